"""Folders for looking at the web page: one as people have it, and one in which every text wants to do harm."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from command import note, write

from mdmemory import open_memory
from mdmemory.files.changes import Create, Replace
from mdmemory.files.memory_file import new_file

HOME = """Mira lives in Oslo, near [[Grünerløkka]], and works at [[Acme]].

- works at:: [[Acme]] (2024-01 → )
- never books flights before nine
- travels by train where she can, see [the trip](../project/summer-trip.md)

| city | since |
|---|---:|
| Oslo | 2021 |
| Bergen | 2016 |
"""
FILES = {
    "user/home.md": ("Home and work", "where Mira lives, and how she travels", HOME, {"tags": ["people", "travel"]}),
    "user/food.md": ("Food", "what Mira eats and does not", "No peanuts.", {"tags": ["people"], "pinned": "true"}),
    "feedback/short-answers.md": (
        "Short answers",
        "Mira wants the answer first, then the reasons",
        "Answer first.",
        {"tags": ["style"]},
    ),
    "project/summer-trip.md": (
        "Summer trip",
        "the trip to Lofoten in July: what is booked, open and decided",
        "# Summer trip\n\nTrain to Bodø, ferry to Moskenes.\n",
        {"tags": ["travel"], "status": "open"},
    ),
    "project/billing.md": ("Billing service", "how invoices are made, and why not at night", "In batches.", {"tags": ["systems"]}),
    "reference/acme.md": ("Acme", "Mira's employer: what they do and who is who", "They make maps.", {"tags": ["people"]}),
    "reference/dashboards.md": ("Dashboards", "where to look when something is slow", "Grafana.", {"tags": ["systems"]}),
    "project/old-office.md": ("Old office", "the office in Storgata", "Closed.", {"valid_until": "2025-01-31"}),
}
EVIL = """"'><img src=x onerror=alert(1)><script>alert(2)</script>${alert(3)}{{ 7*7 }}"""
EVIL_BODY = f"""# {EVIL}

<script>alert(4)</script><img src="https://evil.example/a.png" onerror="alert(5)"><svg onload=alert(6)></svg>
<iframe src="https://evil.example"></iframe><style>body {{ display: none }}</style><base href="https://evil.example/">
<meta http-equiv="refresh" content="0;url=https://evil.example"><form action="https://evil.example"><input name=x></form>

![picture](https://evil.example/b.png) ![](javascript:alert(7))
[click](javascript:alert(8)) [data](data:text/html,<script>alert(9)</script>)
[[javascript:alert(10)]] [[{EVIL}]] [[x|{EVIL}]] <javascript:alert(11)> [a](//evil.example/c) [b](\x01javascript:alert(12))
[c]: https://evil.example/d "title' onclick=alert(13)"
[c] `</code><script>alert(14)</script>` \u202egnp.exe\u202c

| {EVIL} |
|:--|
| <td onclick=alert(15)> |
"""


def filled(root: Path, fill: Callable[[Path], Coroutine[Any, Any, None]]) -> Path:
    """A folder, filled in a thread of its own: a browser's event loop may run in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(fill(root))).result()
    return root


async def fill(root: Path) -> None:
    """A folder as people have it: files, an edit, a conversation."""
    kinds = {"user", "feedback", "project", "reference"}
    async with open_memory(root) as memory:
        for path, (name, description, body, fields) in FILES.items():
            kind = path.partition("/")[0]
            assert kind in kinds
            data = new_file(name, description, kind, body, **fields)  # type: ignore[arg-type]  # texts, and lists of texts
            await memory.folder.apply([Create(path, data)], "agent:monday", "learnt from the conversation")
        base = await memory.folder.read("project/summer-trip.md")
        data = base.replace(b"ferry to Moskenes", b"night ferry to Moskenes")
        known = memory.folder.files["project/summer-trip.md"].etag
        await memory.folder.apply(
            [Replace("project/summer-trip.md", data, str(known), base)], "agent:tuesday", "the ferry is booked"
        )
        async with memory.session("tuesday").turn("Which ferry do we take on the trip to Lofoten?") as turn:
            await turn.system_prompt()
            await turn.take_hint()
            turn.record({"role": "tool", "tool_call_id": "1", "content": "ok"})
            await turn.finish("The night ferry from Bodø to Moskenes.")
    write(root / "project/broken.md", "---\nname: Broken\ndescription: it's: broken\ntype: project\n---\n\nBody.\n")
    write(
        root / "MEMORY.md",
        "# What I know\n\n" + (root / "MEMORY.md").read_text(encoding="utf-8") + "- [Gone](gone.md) — was here\n",
    )
    for number, path in enumerate(reversed([*FILES, "project/broken.md"])):
        os.utime(root / path, (time.time() - 86_400 * number,) * 2)


async def fill_with_evil(root: Path) -> None:
    """A folder in which names, descriptions, tags, types, fields, paths, bodies, messages and reasons want to do harm."""
    async with open_memory(root) as memory:
        fields = {"tags": [EVIL, "a,b"], "supersedes": EVIL, "source": f"{EVIL}#{EVIL}", EVIL: EVIL, "valid_from": EVIL}
        data = new_file(EVIL, EVIL, EVIL, EVIL_BODY, **fields)  # type: ignore[arg-type]  # texts, and lists of texts
        path = f"{EVIL.replace('/', '')}/{EVIL.replace('/', '')}.md"
        await memory.folder.apply([Create(path, data)], EVIL, EVIL)
        await memory.folder.apply([Create("javascript:alert(1).md", new_file("x", "y", "user", EVIL_BODY))], f"agent:{EVIL}", EVIL)
        async with memory.session(EVIL).turn(f"{EVIL} {EVIL_BODY}") as turn:
            await turn.take_hint()
            turn.record({"role": "tool", "tool_call_id": EVIL, "content": EVIL_BODY, EVIL: EVIL})
            await turn.finish(EVIL_BODY)
    write(root / "broken'\">.md", f"---\n{EVIL}: [\n---\n{EVIL_BODY}")
    write(root / "latin.md", EVIL_BODY.encode("utf-16"))
    write(root / "\u202efile\n<img src=x onerror=alert(16)>.md", note("hidden", "in a name"))
    write(root / "MEMORY.md", f"{EVIL_BODY}\n- [{EVIL}](<javascript:alert(17).md>)\n")
