"""mdmemory beside what else finds notes in a folder of Markdown: the same notes and the same queries, in one run.

python benchmarks/peers.py [--large] [ROUNDS]     --large adds 10,000 files

Each peer lives in an environment of its own, made here with pip; one that can't be had is "not installed", with the reason. None
has a network or an embedding model: who would use one runs by words alone. No limit is set: what the others cost is their affair.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import corpus
from peer_process import Answer, Failed, Process, python_of, version_of
from timing import keep, table

import mdmemory

SIZES, LARGE = (1_000,), (1_000, 10_000)
QUERIES = 5
NOTES = Path(__file__).parent.parent / "tests" / "recall_corpus"
CJK = {"しりとり": ("game.md", "今日は成語しりとりをした"), "备份": ("backup-failed.md", "GitHub备份脚本上传失败")}


@dataclass(frozen=True, slots=True)
class Peer:
    """What is measured.

    Args:
        script: in the folder `peer`, with its arguments.
        needs: what pip installs, the peer itself first; nothing for ourselves.
        note: what people should know who compare it.
        finds: whether it finds files by itself; else a model does.
    """

    name: str
    script: tuple[str, ...]
    needs: tuple[str, ...] = ()
    least_python: tuple[int, int] = (3, 11)
    note: str = ""
    finds: bool = True


OURS = "mdmemory, a search"
PEERS = (
    Peer(OURS, ("mdmemory_folder.py",), note="looks at the folder before each search"),
    Peer(
        "mdmemory, a turn",
        ("mdmemory_folder.py", "turn"),
        note="all for one reply, with a hint of at most 5 files",
    ),
    Peer("rank-bm25", ("rank_bm25_files.py",), ("rank-bm25",), note="words at spaces; never looks at the folder again"),
    Peer("bm25s", ("bm25s_files.py",), ("bm25s", "PyStemmer"), note="never looks at the folder again"),
    Peer(
        "agentscope, a reply",
        ("agentscope_memory.py",),
        ("agentscope>=2",),
        note="reads every file at each reply; a model chooses among the 200 newest",
        finds=False,
    ),
    Peer("ReMe", ("reme_search.py",), ("reme-ai[as]",), note="a watcher keeps its index; would add vectors"),
    Peer(
        "basic-memory",
        ("basic_memory_search.py",),
        ("basic-memory",),
        (3, 12),
        note="its text mode wants every word; would add vectors",
    ),
)


def main(rounds: int, sizes: Sequence[int]) -> int:
    """Print a table for each size, and one of what is found."""
    pythons: dict[Peer, Path] = {}
    absent: dict[str, str] = {}
    for peer in PEERS:
        try:
            pythons[peer] = python_for(peer)
        except Failed as error:
            absent[peer.name] = f"not installed: {error}"
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            corpus.fill(Path(place) / "notes", size)
            absent |= measure(pythons, Path(place) / "notes", size, rounds)
    absent |= quality(pythons)
    for name, reason in absent.items():
        print(f"\n{name}: {reason}")
    return 0


def python_for(peer: Peer) -> Path:
    """The Python that runs it; what has the same first word in its script's name shares an environment.

    Raises:
        Failed: it can't be installed.
    """
    return python_of(peer.script[0].partition("_")[0], peer.needs, peer.least_python)


def measure(pythons: Mapping[Peer, Path], notes: Path, size: int, rounds: int) -> dict[str, str]:
    """Build, then ask in turns; returns who failed."""
    failed: dict[str, str] = {}
    built: dict[str, float] = {}
    asked: dict[str, list[Answer]] = {}
    with ExitStack() as stack:
        running = dict[str, Process]()
        for peer, python in pythons.items():
            try:
                process = stack.enter_context(Process(python, peer.script, notes, is_ours=not peer.needs))
                built[peer.name], running[peer.name] = process.build().cpu_s, process
            except Failed as error:
                if peer.name == OURS:
                    raise
                failed[peer.name] = f"failed with {size:,} files: {error}"
        for number in range(rounds + 1):
            queries = corpus.queries(size, QUERIES, number)
            for name in list(running)[:: 1 if number % 2 else -1]:
                try:
                    asked.setdefault(name, []).append(running[name].ask(queries))
                except Failed as error:
                    failed[name] = f"failed with {size:,} files: {error}"
                    del running[name], asked[name]
    show_costs(pythons, size, built, {name: answers[1:] for name, answers in asked.items()})  # the first round warms up
    return failed


def show_costs(pythons: Mapping[Peer, Path], size: int, built: Mapping[str, float], asked: Mapping[str, Sequence[Answer]]) -> None:
    """One table."""
    rows, kept = [], []
    for peer in [peer for peer in pythons if peer.name in asked]:
        answers = asked[peer.name]
        ms = 1000 * median(answer.cpu_s for answer in answers) / QUERIES
        share = median(answer.cpu_s / ours.cpu_s for answer, ours in zip(answers, asked[OURS], strict=True))
        opened = max(answer.opened for answer in answers) / QUERIES
        version = version_of(pythons[peer], peer.needs[0]) if peer.needs else mdmemory.__version__
        rows.append((peer.name, version, f"{built[peer.name]:.2f}", f"{ms:.2f}", f"{share:.2f}", f"{opened:,.0f}"))
        kept.append({"name": peer.name, "size": size, "ms": ms})
    heads = [f"{size:,} files", "version", "index build, CPU s", "a query or reply, CPU ms", f"÷ {OURS}", "files opened each"]
    print(f"\n{table(heads, rows)}", flush=True)
    keep("peers", kept)


def quality(pythons: Mapping[Peer, Path]) -> dict[str, str]:
    """What is found among the notes of the tests, in five languages, with two more in Chinese and Japanese."""
    rows, failed = [], dict[str, str]()
    lines = (line.partition(" → ") for line in (NOTES / "expected.txt").read_text(encoding="utf-8").splitlines())
    expected = {query: [path.strip() for path in paths.split("|")] for query, arrow, paths in lines if arrow and query[0] != "#"}
    with tempfile.TemporaryDirectory() as place:
        notes = Path(place) / "notes"
        shutil.copytree(NOTES, notes)
        for path, body in CJK.values():
            (notes / path).write_text(f"---\nname: {path}\ndescription: a note\ntype: project\n---\n\n{body}\n", encoding="utf-8")
        for peer, python in pythons.items():
            try:
                with Process(python, peer.script, notes, is_ours=not peer.needs) as process:
                    process.build()
                    found = process.ask([*expected, *CJK]).found
            except Failed as error:
                failed[peer.name] = f"failed: {error}"
                continue
            rows.append((peer.name, *(figures(expected, found) if peer.finds else ["a model's affair", "", ""]), peer.note))
    heads = ["", f"recall@5, {len(expected)} questions", "recall@10", "notes in Chinese and Japanese", "what to know"]
    print(f"\n{table(heads, rows)}")
    return failed


def figures(expected: Mapping[str, Sequence[str]], found: Sequence[Sequence[str]]) -> list[str]:
    """The mean share of the expected files among the first, in percent; and how many of the two notes were found."""
    answers = dict(zip([*expected, *CJK], found, strict=True))
    recall = [
        sum(len({*paths} & {*answers[query][:depth]}) / len(paths) for query, paths in expected.items()) / len(expected)
        for depth in (5, 10)
    ]
    cjk = sum(path in answers[query] for query, (path, _) in CJK.items())
    return [*(f"{100 * share:.1f}" for share in recall), f"{cjk} of {len(CJK)}"]


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument != "--large"]
    sys.exit(main(int(numbers[0]) if numbers else 5, LARGE if "--large" in sys.argv else SIZES))
