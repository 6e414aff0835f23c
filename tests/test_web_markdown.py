"""The text of a memory file as HTML: links lead to files, and nothing of it runs or fetches anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.web.markdown import to_html

FILES = {"Acme": "project/acme.md", "../project/acme.md": "project/acme.md", "a b.md": "user/a b.md"}
PIECES = st.sampled_from(
    """<script>alert(1)</script>|<img src=x onerror=alert(1)>|[a](javascript:alert(1))|![b](http://evil.example/x.png)
    |<svg onload=x>
    |[[Acme|<b>x</b>]]|[[javascript:alert(1)]]|<a href="data:text/html,x">|`|"|'|&lt;|&#x6a;avascript:|[|](|)|\n|\n\n|> |- |# |<|>|
    |[x]: javascript:alert(1)|[x]|<style>*{}</style>|<!--|-->|http://evil.example|<http://x"onclick=y>|{{ 7*7 }}|\u202e|\0
    |[a](//evil.example)|[a](vbscript:x)|[a](data:text/html;base64,x)|~~|**|```|<iframe src=//evil.example>|| --- |""".split("|")
)
HARMLESS = {"a", "blockquote", "br", "code", "del", "em", "hr", "li", "ol", "p", "pre", "s", "strong", "ul"}
HARMLESS |= {"table", "tbody", "td", "th", "thead", "tr", *(f"h{level}" for level in range(1, 7))}


class Tags(HTMLParser):
    """Every tag and attribute of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take it in."""
        self.tags.append((tag, dict(attrs)))


@given(st.lists(PIECES, max_size=12))
def test_nothing_of_a_text_can_do_harm(pieces: list[str]) -> None:
    """Whatever the text, its HTML has plain tags only, no attribute that runs or fetches, and links of four kinds."""
    for tag, attributes in Tags(to_html("".join(pieces), FILES.get)).tags:
        assert tag in HARMLESS
        assert attributes.keys() <= {"href", "title", "class", "rel", "start"}
        href = attributes.get("href")
        assert href is None or re.match(r"https?://|mailto:|/file/|/new\?name=", href), href
        assert not href or not re.match(r"//|/file/\.\.", href)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("[[Acme]]", '<a href="/file/project/acme.md" class="file" rel="noopener noreferrer">Acme</a>'),
        ("[[Acme#Old|the firm]]", '<a href="/file/project/acme.md" class="file" rel="noopener noreferrer">the firm</a>'),
        ("![[Acme]]", '<a href="/file/project/acme.md" class="file" rel="noopener noreferrer">Acme</a>'),
        ("[x](../project/acme.md#a)", '<a href="/file/project/acme.md" class="file" rel="noopener noreferrer">x</a>'),
        ("[x](<a b.md>)", '<a href="/file/user/a%20b.md" class="file" rel="noopener noreferrer">x</a>'),
        ("[[No One]]", '<a href="/new?name=No+One" class="missing" rel="noopener noreferrer">No One</a>'),
        ("[x](https://a.example)", '<a href="https://a.example" class="outside" rel="noopener noreferrer">x</a>'),
        ("![cat](https://a.example/c.png)", '<a href="https://a.example/c.png" class="outside" rel="noopener noreferrer">cat</a>'),
        ("[x](//evil.example)", '<a class="outside" rel="noopener noreferrer">x</a>'),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("`[[Acme]]`", "<code>[[Acme]]</code>"),
    ],
)
def test_links(text: str, html: str) -> None:
    """Links to files lead to their pages, those to nothing offer to make the file, and pictures are links."""
    assert to_html(text, FILES.get) == f"<p>{html}</p>\n"


def test_a_table_keeps_its_columns() -> None:
    """Figures stand on the right, by a class: a style of its own would be blocked."""
    made = to_html("| a | b |\n|---|--:|\n| 1 | 2 |", FILES.get)
    assert '<td class="right">2</td>' in made and "style" not in made
