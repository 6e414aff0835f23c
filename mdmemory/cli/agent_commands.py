"""`mdmemory prompt`, `chat` and `demo`: what an agent sees, an agent to talk to, and the main job in two processes. Floor 8."""

from __future__ import annotations

import sys

import click

from mdmemory.cli.tables import print_note
from mdmemory.cli.terminal import (
    failure,
    folder_option,
    harmless,
    json_option,
    opened,
    print_json,
    refuse_file,
    require_folder,
    run,
)

json_lines_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line, with role and text.")


@click.command()
@folder_option
@click.option("-m", "--message", metavar="TEXT", help="Also show the hint an agent would get for this message.")
@json_option
@run
async def prompt(folder: str, message: str | None, as_json: bool) -> None:
    """Print what an agent would see: its system prompt, and a hint."""
    from mdmemory.render import estimate_tokens

    require_folder(folder)
    async with opened(folder, journal=False) as memory:
        await memory.folder.refresh()  # a turn would go on without a memory that can't be looked at
        async with memory.session().turn(message or "") as turn:
            system = await turn.system_prompt()
            hint = await turn.take_hint() if message else None
    if turn.status.degraded:
        raise failure(turn.status.degraded.removeprefix("degraded: "))
    if as_json:
        files = [{"path": file.path, "reason": file.reason} for file in hint.files] if hint else []
        print_json(
            {"system_prompt": system, "tokens": estimate_tokens(system), "hint": str(hint) if hint else None, "hint_files": files}
        )
        return
    parts = [system]
    if message:
        parts.append(str(hint) if hint else "(No hint: no memory file is near this message.)")
    text = "\n\n".join(parts)
    click.echo(harmless(text) if sys.stdout.isatty() else text)
    print_note(f"about {estimate_tokens(system) + (hint.tokens if hint else 0):,} tokens")


@click.command()
@folder_option
@click.option(
    "--model",
    envvar="MDMEMORY_MODEL",
    show_envvar=True,
    required=True,
    metavar="SPEC",
    help="openai:NAME or openai:NAME@http://host:port/v1; the key is taken from OPENAI_API_KEY.",
)
@click.option("--selector", metavar="SPEC", help="The model that chooses files for hints; without it, shared words do.")
@click.option("-m", "--message", multiple=True, metavar="TEXT", help="Say this and leave; may be given several times.")
@click.option("--session", "session_id", metavar="ID", help="Goes on with the conversation of this name, or begins it.")
@json_lines_option
@run
def chat(folder: str, model: str, selector: str | None, message: tuple[str, ...], session_id: str | None, as_json: bool) -> None:
    """Talk to an agent that has this memory.

    It runs over any OpenAI-compatible endpoint. Messages come from -m, else a line each from standard input. Ctrl-C ends a
    reply, and at the prompt the conversation; Ctrl-D ends it too.
    """
    import contextlib
    import uuid

    from mdmemory.cli.chat_loop import OpenAIChat
    from mdmemory.cli.conversation import JsonScreen, PlainScreen, converse
    from mdmemory.errors import ConfigError
    from mdmemory.models import OpenAIModel, model_from_string

    refuse_file(folder)
    try:
        chosen = model_from_string(model)
        if selector is not None:
            model_from_string(selector)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if not isinstance(chosen, OpenAIModel):
        raise click.UsageError("chat speaks to OpenAI-compatible endpoints: give --model openai:NAME or openai:NAME@ADDRESS.")
    with contextlib.suppress(ImportError):  # the first call will say what to install
        import openai  # noqa: F401  # takes a second, which is better spent before the first turn than in its wait for a hint
    name = session_id or uuid.uuid4().hex[:12]
    agent = OpenAIChat(chosen.model, chosen.base_url)
    converse(folder, name, agent, JsonScreen(name) if as_json else PlainScreen(), message or None, selector)


@click.command()
@click.argument("folder", default="demo-memory")
@json_lines_option
@click.option("--act", type=click.IntRange(1, 2), hidden=True)
@run
def demo(folder: str, as_json: bool, act: int | None) -> int:
    """Show the main job: one process is told, the next one knows.

    The model is scripted; the tools, files, index and hints are real. FOLDER is ./demo-memory by default, and stays to be looked
    at: run it again after editing a file there.
    """
    from mdmemory.cli.demo import play, play_in_processes

    refuse_file(folder)
    return play_in_processes(folder, as_json) if act is None else play(folder, act, as_json)
