"""`mdmemory prompt`, `chat` and `demo`: what an agent sees, an agent to talk to, and the main job in two processes. Floor 7."""

from __future__ import annotations

import sys

import click

from mdmemory.cli.terminal import folder_option, json_option, print_json, require_folder, run


@click.command()
@folder_option
@click.option("-m", "--message", metavar="TEXT", help="Also show the hint an agent would get for this message.")
@json_option
@run
async def prompt(folder: str, message: str | None, as_json: bool) -> None:
    """Print what an agent would see: the memory's part of its system prompt, and a hint."""
    from mdmemory.memory import open_memory
    from mdmemory.render import estimate_tokens

    require_folder(folder)
    async with open_memory(folder) as memory, memory.session().turn(message or "") as turn:
        system = await turn.system_prompt()
        hint = await turn.take_hint() if message else None
    if as_json:
        files = [{"path": file.path, "reason": file.reason} for file in hint.files] if hint else []
        print_json(
            {"system_prompt": system, "tokens": estimate_tokens(system), "hint": str(hint) if hint else None, "hint_files": files}
        )
        return
    click.echo(system)
    if message:
        click.echo(f"\n{hint}" if hint else "\n(No hint: no memory file is near this message.)")
    total = estimate_tokens(system) + (hint.tokens if hint else 0)
    click.echo(click.style(f"about {total:,} tokens", dim=True), err=True)


@click.command()
@folder_option
@click.option(
    "--model", envvar="MDMEMORY_MODEL", required=True, metavar="SPEC", help="openai:NAME or openai:NAME@http://host:port/v1"
)
@click.option("--selector", metavar="SPEC", help="The model that chooses hints; without it, recall by words does.")
@click.option("-m", "--message", multiple=True, metavar="TEXT", help="Say this and leave; may be given several times.")
@click.option("--session", "session_id", metavar="ID", help="Names the conversation in the memory's history.")
@run
async def chat(folder: str, model: str, selector: str | None, message: tuple[str, ...], session_id: str | None) -> int:
    """Talk to an agent with this memory, over any OpenAI-compatible endpoint."""
    from mdmemory.cli.chat_loop import OpenAIChat
    from mdmemory.cli.conversation import converse
    from mdmemory.errors import ConfigError
    from mdmemory.memory import open_memory
    from mdmemory.models import OpenAIModel, model_from_string

    chosen = model_from_string(model)
    if not isinstance(chosen, OpenAIModel):
        raise ConfigError(
            "mdmemory chat speaks to OpenAI-compatible endpoints: give --model openai:NAME or openai:NAME@http://host:port/v1"
        )
    agent = OpenAIChat(chosen.model, chosen.base_url)
    try:
        async with open_memory(folder, model=selector) as memory:
            return await converse(memory.session(session_id), agent, message or None)
    finally:
        await agent.close()


@click.command()
@click.argument("folder", default="demo-memory")
@click.option("--act", type=click.IntRange(1, 2), hidden=True)
def demo(folder: str, act: int | None) -> None:
    """Show the main job with a scripted model: one process remembers, a second one knows."""
    from mdmemory.cli.demo import play, play_in_processes

    sys.exit(play_in_processes(folder) if act is None else play(folder, act))
