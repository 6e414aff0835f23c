"""What every page shares: the memory, the templates, the forms that come back, and who may change what. Floor 6."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mdmemory.backends.paths import owner
from mdmemory.backends.protocol import MAX_FILE_BYTES
from mdmemory.folder.any_folder import Folder, has_news
from mdmemory.folder.entities import Entities
from mdmemory.folder.search import filed
from mdmemory.memory import Memory
from mdmemory.recall.filters import superseded
from mdmemory.render import age
from mdmemory.web.forms import flat
from mdmemory.web.news import News
from mdmemory.web.overview import Overview, overview_of

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
MAX_FORM_BYTES: Final = 8 * MAX_FILE_BYTES  # a file as it was opened and as it is now, with every byte as %XX
FRESH_S: Final = 0.5  # as long as a look counts while the system tells of no change
PAGES: Final = (
    ("Memories", "/"),
    ("Index", "/index"),
    ("Journal", "/journal"),
    ("History", "/history"),
    ("Turns", "/turns"),
    ("Review", "/review"),
    ("Doctor", "/doctor"),
)
AUTHOR: Final = "person"
NOTES: Final[Mapping[str, str]] = {
    "saved": "Saved.",
    "same": "Nothing was different, so nothing was written.",
    "merged": "Saved, together with an edit of other lines that somebody made meanwhile.",
    "made": "Saved. The index has its line.",
    "moved": "Moved.",
    "deleted": "Deleted. The history keeps the text.",
    "repaired": "Mended. It stands in the history and can be undone.",
    "accepted": "Accepted. One undo in the history takes all of it back.",
    "rejected": "Rejected. The same is not proposed again until one of its files changes.",
    "edited": "Your words stand in it now. It still waits to be accepted.",
    "undone": "Undone. The undoing stands in the history too, and can itself be undone.",
}
"""What a page says after a form, by the name that stands in its address."""


@dataclass(slots=True)
class Site:
    """One memory as a web site.

    Args:
        token: of its address; the forms carry what is made of it.
        user: whose memory it is, where a server has several; they can sign out.
    """

    memory: Memory
    token: str
    user: str = ""
    news: News = field(init=False)
    csrf: str = field(init=False)
    kept_list: tuple[object, Response] | None = None
    """The list as it was sent last, and all that it depends on."""
    _looked: float = float("-inf")
    _entities: tuple[object, Entities] | None = None
    _overview: tuple[object, Overview] | None = None

    def __post_init__(self) -> None:
        self.news = News(self.memory.folder)
        self.csrf = hmac.digest(self.token.encode(), b"forms", "sha256").hex()

    @property
    def folder(self) -> Folder:
        """The folder that is shown."""
        return self.memory.folder

    async def look(self) -> None:
        """Look at the folder, unless that was done a moment ago and the system has told of no change since.

        Raises:
            Unavailable: could not look.
        """
        now = time.monotonic()
        if now - self._looked > FRESH_S or has_news(self.folder):
            await self.folder.refresh()
            self._looked = now

    def page(self, template: str, request: Request, status: int = 200, **values: object) -> HTMLResponse:
        """A whole page."""
        shared: dict[str, Any] = {"csrf": self.csrf, "static": f"/static/{static_version()}", "pages": PAGES}
        shared["notice"] = NOTES.get(request.query_params.get("note", ""))
        shared |= {"here": request.url.path, "is_read_only": self.folder.is_read_only, "user": self.user}
        return HTMLResponse(templates().get_template(f"{template}.html.j2").render(shared | values), status)

    async def form(self, request: Request) -> Mapping[str, str]:
        """The fields of a form of ours, with line ends as LF; of several with one name, the last."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            raise HTTPException(415, "A form is sent as application/x-www-form-urlencoded.")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                raise HTTPException(413, "The form is larger than a memory file may be.")
        try:
            pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=1_000)
        except ValueError:
            raise HTTPException(400, "The form can't be read.") from None
        fields = {name: flat(value) for name, value in pairs}
        if not hmac.compare_digest(fields.pop("csrf", "").encode(), self.csrf.encode()):
            raise HTTPException(403, "This form is not of this memory, or the server was started anew. Load the page again.")
        return fields

    def entities(self) -> Entities:
        """What names mean, as of the last look."""
        if self._entities is None or self._entities[0] != self.seen:
            catalog = self.folder.catalog
            files = filed(catalog.files, catalog.mount_of)
            self._entities = self.seen, Entities(files, self.folder.outdated, superseded(files))
        return self._entities[1]

    def overview(self) -> Overview:
        """The list of all files, as of the last look."""
        if self._overview is None or self._overview[0] != self.seen:
            self._overview = self.seen, overview_of(self.folder)
        return self._overview[1]

    @property
    def seen(self) -> object:
        """Another one when a file has changed, or the day has, on which some may expire."""
        return self.folder.catalog.generation, date.today()

    def can_write(self, path: str) -> bool:
        """Whether a person may change the file here."""
        place = {place.prefix: place.can_write for place in self.folder.places}
        return not self.folder.is_read_only and place.get(owner(path, ["", *place]), True)


def site_of(request: Request) -> Site:
    """The site that a request is for."""
    site: Site = request.app.state.site
    return site


def number_of(request: Request, name: str) -> int:
    """A number of the address, from 1 on; 1 when there is none."""
    text = request.query_params.get(name, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 5 else 1


def see_other(url: str, note: str = "") -> RedirectResponse:
    """The answer to a form that was taken: the page to look at now, with one of the notices of the layout."""
    return RedirectResponse(f"{url}?{urlencode({'note': note})}" if note else url, 303)


def link_to(kind: str, name: str, **query: str) -> str:
    """The address of a page about one file or session."""
    return f"/{kind}/{quote(name)}" + (f"?{urlencode(query)}" if query else "")


@cache
def templates() -> Environment:
    """The environment of the pages: everything is escaped, and no variable is missing without an error."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"ago": ago, "minute": minute}
    made.globals["link_to"] = link_to
    return made


@cache
def static_version() -> str:
    """Names the style and the scripts as they are, so that browsers may keep them."""
    files = sorted(path for path in STATIC.iterdir() if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def ago(moment: datetime) -> str:
    """How long ago something was."""
    return age((datetime.now(UTC) - moment).total_seconds() / 86_400)


def minute(moment: datetime) -> str:
    """The day and the time, UTC."""
    return moment.strftime("%Y-%m-%d %H:%M UTC")
