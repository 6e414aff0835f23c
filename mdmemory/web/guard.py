"""Who is let in, and what browsers are told with every answer. Floor 6.

The token of the printed address becomes a cookie at the first visit. A request must name a host that is ours, carry that cookie,
and, when it may change something, come from a page of ours.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mdmemory.address import Address

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@]+)(?::\d{1,5})?", re.IGNORECASE)
SAFE_METHODS: Final = ("GET", "HEAD")
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send `Origin: null` with our own forms
    "X-Content-Type-Options": "nosniff",
}
_RAW_HEADERS: Final = tuple(
    (name.lower().encode(), value.encode()) for name, value in {**HEADERS, "Cache-Control": "no-store"}.items()
)


class Guard:
    """Lets through what may pass, to the application behind it.

    Args:
        token: what the first visit shows, and every later one as a cookie.
    """

    def __init__(self, app: ASGIApp, address: Address, token: str) -> None:
        self._app, self._token = app, token
        self._hosts = frozenset(host.casefold() for host in address.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        answer = self._answer(scope, Headers(scope=scope)) or self._app
        await answer(scope, receive, with_headers(send))

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """What is said in place of the page; None for who may see it."""
        if not is_our_name(headers, self._hosts):
            return PlainTextResponse("This name is not served here: see --allow-host.", 421)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] in SAFE_METHODS and any(name == "token" for name, _ in query):
            return self._welcome(scope, query)
        if not self._is_token(cookie_of(headers, _cookie_name(scope))):
            return PlainTextResponse("Open the address that `mdmemory serve` printed: it lets this browser in.", 401)
        if scope["method"] not in SAFE_METHODS and not is_from_own_page(headers):
            return PlainTextResponse("This did not come from a page of this memory.", 403)
        return None

    def _welcome(self, scope: Scope, given: Sequence[tuple[str, str]]) -> Response:
        """Trade the token for a cookie, at the same address without it."""
        if not any(self._is_token(value) for name, value in given if name == "token"):
            return PlainTextResponse("This address has run out: open the one that `mdmemory serve` printed last.", 401)
        answer = RedirectResponse(without_token(scope["path"], given), 303)
        answer.set_cookie(_cookie_name(scope), self._token, httponly=True, samesite="strict")
        return answer

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode())


def _cookie_name(scope: Scope) -> str:
    """Browsers send cookies to every port of a host, and two memories may be served on two of them."""
    return f"mdmemory-{(scope.get('server') or ('', 0))[1]}"


def with_headers(send: Send) -> Send:
    """Tell browsers with every answer what its page may do."""

    async def send_guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = message["headers"]
            names = {name for name, _ in given}  # an answer may say for itself what else holds for all
            message["headers"] = [*given, *(pair for pair in _RAW_HEADERS if pair[0] not in names)]
        await send(message)

    return send_guarded


def without_token(path: str, query: Sequence[tuple[str, str]]) -> str:
    """The same address on this server, without the token in it."""
    rest = urlencode([pair for pair in query if pair[0] != "token"])
    path = "/" + quote(path.lstrip("/\\"))  # two slashes would lead to another host
    return f"{path}?{rest}" if rest else path


def is_our_name(headers: Headers, hosts: Collection[str]) -> bool:
    """Whether a request names one of the hosts, which are casefolded; another leads here by a trick."""
    given = headers.getlist("host")
    found = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    return found is not None and found[1].casefold() in hosts


def cookie_of(headers: Headers, name: str) -> str:
    """What a cookie holds; empty when there is none."""
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def is_from_own_page(headers: Headers) -> bool:
    """Whether the page that sent a form is one of this server, under the same name and port."""
    origins, host = headers.getlist("origin"), headers.get("host", "")
    return len(origins) == 1 and origins[0].casefold() in (f"http://{host}".casefold(), f"https://{host}".casefold())
