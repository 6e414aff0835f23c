"""What it costs to remember a conversation: tokens and calls of a model, beside peers; and what it adds to a reply.

python benchmarks/conversation.py [ROUNDS]     exits with 1 when a limit of ours is passed

All have the same 40 turns (conversation.yaml) and the same model over a real connection, from a script (conversation_server.py).
Each prompt holds the current turn only, so that what is older comes from the memory. Tokens are estimated, for all alike, as
render.estimate_tokens does: four ASCII characters, or one other, make one.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import get_args

from conversation_reply import reply_figures
from conversation_server import DIMENSIONS, Call, Kind, Server
from conversation_turns import Turn, read_turns
from peer_process import Failed, Process, version_of
from peers import Peer, python_for
from timing import Figure, judge, table

import mdmemory
from mdmemory.render import estimate_tokens

BASE = "You are a helpful assistant."
SHOWN = (1, 10, 40)
SAVES, OFTEN, SELDOM = "mdmemory, the agent saves", "mdmemory, drawn from every turn", "mdmemory, drawn from every 15 messages"
OURS = (
    Peer(SAVES, ("mdmemory_conversation.py", "tools"), note="no model of its own: hints come from search"),
    Peer(SELDOM, ("mdmemory_conversation.py", "15"), note="a model chooses hints; what is younger is in no file yet"),
    Peer(OFTEN, ("mdmemory_conversation.py", "1"), note="a model chooses hints"),
)
PEERS = (
    Peer(
        "agentscope, the agent saves",
        ("agentscope_conversation.py",),
        ("agentscope>=2",),
        note="the agent keeps the index too; a model chooses hints, for which the first step does not wait",
    ),
    Peer(
        "mem0",
        ("mem0_conversation.py", str(DIMENSIONS)),
        ("mem0ai",),
        note="search and add as in its README; adds, changes nothing",
    ),
)
AGENT_SAVES = (OURS[0], PEERS[0])


@dataclass(frozen=True, slots=True)
class Run:
    """A whole conversation.

    Args:
        calls: those of each turn.
        kept: how many memories there are in the end.
        wake_up: the block that mdmemory then has for the next conversation.
    """

    turns: Sequence[Turn]
    calls: Sequence[Sequence[Call]]
    kept: int
    wake_up: str = ""

    @property
    def tokens(self) -> list[int]:
        """What the memory adds to the agent's calls, by turn: all that was sent and got, but for what was said."""
        added = []
        for turn, calls in zip(self.turns, self.calls, strict=True):
            used = sum(call.sent + call.got for call in calls if call.kind == "agent")
            added.append(used - sum(map(estimate_tokens, (BASE, turn.user, turn.reply))))
        return added

    @property
    def own_tokens(self) -> int:
        """What the memory's own calls sent and got, to choose and to draw memories from what was said; without embeddings."""
        return sum(call.sent + call.got for calls in self.calls for call in calls if call.kind in ("selection", "extraction"))

    def count(self, kind: Kind) -> int:
        """How often a model was asked for something."""
        return sum(call.kind == kind for calls in self.calls for call in calls)

    @property
    def facts(self) -> int:
        """How many facts were saved, changed ones included."""
        return sum(call.facts for calls in self.calls for call in calls)

    @property
    def saving_calls(self) -> int:
        """Calls that were there to save: extractions, and more than one step of the agent where the user told something."""
        told = [calls for turn, calls in zip(self.turns, self.calls, strict=True) if turn.tells]
        steps = sum(call.kind == "agent" for calls in told for call in calls) - len(told)
        return self.count("extraction") + steps

    @property
    def answered(self) -> tuple[int, int]:
        """How many questions had their answer in the prompt of the reply, of how many."""
        asked = [(turn.asks, calls) for turn, calls in zip(self.turns, self.calls, strict=True) if turn.asks]
        found = [fact.answer in [call for call in calls if call.kind == "agent"][-1].prompt for fact, calls in asked]
        return sum(found), len(found)


def main(rounds: int) -> int:
    """Print the tables; the exit code says whether our limits hold."""
    turns, runs, absent = read_turns(), dict[Peer, Run](), dict[str, str]()
    with tempfile.TemporaryDirectory() as place:
        for peer in (*OURS, *PEERS):
            try:
                runs[peer] = play(peer, turns, Path(place) / peer.script[-1])
            except Failed as error:
                if not peer.needs:
                    raise
                absent[peer.name] = f"not installed, or failed: {error}"
    show_tokens(runs, turns)
    show_calls(runs)
    for name, reason in absent.items():
        print(f"\n{name}: {reason}")
    print(flush=True)
    ours = {peer.name: run for peer, run in runs.items()}
    found = [*figures(ours), wake_up_figure(ours[OFTEN]), *reply_figures(turns, rounds)]
    return judge(found, ("", "CPU ms ÷ CPU ms; wall"))


def play(peer: Peer, turns: Sequence[Turn], place: Path) -> Run:
    """Have the conversation with a memory that is empty.

    Raises:
        Failed: the peer can't be installed, or did not answer.
    """
    python, calls, kept = python_for(peer), list[list[Call]](), list[str]()
    place.mkdir()
    script, *arguments = peer.script
    with ExitStack() as stack:
        server = stack.enter_context(Server(turns, saves=peer in AGENT_SAVES))
        command = script, server.base_url, *arguments
        process = stack.enter_context(Process(python, command, place, is_ours=not peer.needs))
        process.build()
        for turn in turns:
            server.turn, server.calls = turn, []
            [kept] = process.ask([turn.user]).found
            calls.append(server.calls)
        block = "" if peer.needs else asyncio.run(wake_up(process.notes))
    return Run(turns, calls, len(kept), block)


async def wake_up(folder: Path) -> str:
    """The wake-up block of a folder."""
    async with mdmemory.open_memory(folder, config=mdmemory.Config(cache=False)) as memory:
        return await memory.wake_up()


def show_tokens(runs: Mapping[Peer, Run], turns: Sequence[Turn]) -> None:
    """What is sent and got for the memory, beside sending all that was said before."""
    said = accumulate((estimate_tokens(turn.user) + estimate_tokens(turn.reply) for turn in turns[:-1]), initial=0)
    rows = [token_row("the whole conversation in the prompt", "", list(said), 0)]
    for peer, run in runs.items():
        version = version_of(python_for(peer), peer.needs[0]) if peer.needs else mdmemory.__version__
        rows.append(token_row(peer.name, version, run.tokens, run.own_tokens, peer.note))
    shown = [f"turn {number}" for number in SHOWN]
    heads = ["tokens for the memory", "version", *shown, "the agent's calls", "calls of its own", "together", "what to know"]
    print(table(heads, rows))


def token_row(name: str, version: str, tokens: Sequence[int], own: int, note: str = "") -> Sequence[str]:
    """Some turns, their sum, and what comes to it."""
    figures = [*(tokens[number - 1] for number in SHOWN), sum(tokens), own, sum(tokens) + own]
    return [name, version, *(f"{figure:,}" for figure in figures), note]


def show_calls(runs: Mapping[Peer, Run]) -> None:
    """How often a model is asked."""
    rows = []
    for peer, run in runs.items():
        counts = [run.count(kind) for kind in get_args(Kind)]
        found, asked = run.answered
        rows.append((peer.name, *counts, run.facts, f"{run.saving_calls / run.facts:.2f}", run.kept, f"{found} of {asked}"))
    kinds = ["the agent's", "to choose", "to draw memories", "for embeddings"]
    heads = ["calls", *kinds, "facts saved", "calls to save ÷ facts", "memories in the end", "answers in the prompt"]
    print(f"\n{table(heads, rows)}")


def figures(runs: Mapping[str, Run]) -> list[Figure]:
    """What we promise of ourselves."""
    found, asked = runs[OFTEN].answered
    told, of = runs[SAVES].answered
    return [
        Figure("tokens of an empty memory in each prompt", runs[SELDOM].tokens[0], 2_000),
        Figure("calls to draw memories from 80 messages, every 15", runs[SELDOM].count("extraction"), 5),
        Figure("questions without an answer in the prompt", asked - found + of - told, 0),
    ]


def wake_up_figure(run: Run) -> Figure:
    """How much shorter the wake-up block is than the conversation; and how much of what was asked about stands in it."""
    said = sum(estimate_tokens(text) for turn in run.turns for text in (turn.user, turn.reply))
    asked = [turn.asks.answer for turn in run.turns if turn.asks]
    there, tokens = sum(answer in run.wake_up for answer in asked), estimate_tokens(run.wake_up)
    detail = f"{said:,} ÷ {tokens:,} tokens, with the answers to {there} of {len(asked)} questions"
    return Figure("the conversation ÷ the wake-up block", said / tokens, 3, at_least=True, detail=detail)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 40))
