"""What the site has besides docs/: the pages of the repository's first level, and names in place of links to code."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_FENCE = re.compile(r"^(```+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE_OF_FILE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie beside docs/."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to where the site has what they mean; what it does not have is named."""
    place = page.file.src_uri
    source = next((name for name, own in PAGES.items() if own == place), f"docs/{place}")
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(lambda link: _led(link, source, place), markdown[end : fence.start()]), _titled(fence[0])]
        end = fence.end()
    return "".join([*parts, _LINK.sub(lambda link: _led(link, source, place), markdown[end:])])


def _titled(block: str) -> str:
    """The path behind a block's language is its title here."""
    return _CODE_OF_FILE.sub(r'``` { .\1 title="\2" }', block, count=1)


def _led(link: re.Match[str], source: str, place: str) -> str:
    path, mark, anchor = link["target"].partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return link[0]
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if meant in PAGES:
        there = PAGES[meant]
    elif meant.startswith("docs/"):
        there = meant.removeprefix("docs/")
    else:
        return f"`{meant}`" if link["text"].strip("`") in meant else f"{link['text']} (`{meant}`)"
    return f"{link['image']}[{link['text']}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{mark}{anchor})"
