"""The text of a memory file as HTML that can do no harm: nothing of it runs, and nothing is fetched for it. Floor 6."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlencode, urlsplit

from mdmemory.files.fields import shown
from mdmemory.web.site import link_to

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

Resolve = Callable[[str], str | None]
"""The file that a link's target leads to; None when there is none."""
MAX_RENDERED_CHARS: Final = 100_000  # rendering more can take seconds, as of a text that is nothing but brackets
_WIKILINK: Final = re.compile(r"!?\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|([^\[\]\n]*))?\]\]")
_TAGS: Final = set("a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split())
_ATTRIBUTES: Final = {"a": {"href", "title", "class"}, "ol": {"start"}, "th": {"class"}, "td": {"class"}}
_SCHEMES: Final = {"http", "https", "mailto"}


def to_html(body: str, resolve: Resolve) -> str:
    """Render Markdown; links to memory files lead to their pages, pictures are links, HTML is shown as text."""
    import nh3

    tokens = _parser().parse(body)
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            align = str(token.attrs.pop("style", "")).rpartition(":")[2].strip()
            if align in ("center", "right"):
                token.attrSet("class", align)
        if token.children:
            token.children = list(_with_links(token.children, resolve))
    made = _parser().renderer.render(tokens, _parser().options, {})
    return nh3.clean(made, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=_SCHEMES, link_rel="noopener noreferrer")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    found = _WIKILINK.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        target = found[1].strip()
        state.push("link_open", "a", 1).attrs = {"href": target}
        state.push("text", "", 0).content = (found[2] or "").strip() or shown(target)
        state.push("link_close", "a", -1)
        state.tokens[-3].meta["is_name"] = True
    state.pos = found.end()
    return True


def _with_links(tokens: Sequence[Token], resolve: Resolve) -> Iterator[Token]:
    from markdown_it.token import Token

    for token in tokens:
        if token.type == "image":  # nothing is fetched: neither from strangers, nor what else lies in the folder
            source = str(token.attrs.get("src", ""))
            opening = Token("link_open", "a", 1, attrs={"href": source})
            yield _led(opening, resolve)
            yield Token("text", "", 0, content=token.content or source or "picture")
            yield Token("link_close", "a", -1)
        else:
            yield _led(token, resolve) if token.type == "link_open" else token


def _led(link: Token, resolve: Resolve) -> Token:
    """Lead a link to the page of its file."""
    href = str(link.attrs.get("href", ""))
    is_name = bool(link.meta.get("is_name"))
    if not is_name and (_scheme(href) or href.startswith(("//", "#"))):
        link.attrs["class"] = "outside"
        if href.startswith(("//", "#")):
            link.attrs.pop("href")
        return link
    target = href if is_name else unquote(re.split("[#?]", href, maxsplit=1)[0])
    path = resolve(target)
    link.attrs["href"] = link_to("file", path) if path else f"/new?{urlencode({'name': shown(target)})}"
    link.attrs["class"] = "file" if path else "missing"
    return link


def _scheme(href: str) -> str:
    try:
        return urlsplit(href).scheme
    except ValueError:
        return "?"
