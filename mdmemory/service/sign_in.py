"""How a browser trades a token for a cookie, and gives it back. Floor 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope

from mdmemory.service.seal import MAX_TOKEN_BYTES, Seal
from mdmemory.service.users import Authenticate
from mdmemory.web.guard import SAFE_METHODS, cookie_of, without_token
from mdmemory.web.site import static_version, templates

MAX_FORM_BYTES: Final = 20_000
_BY_HAND: Final = ("none", None)  # what browsers send with an address that was typed or opened from a mail, and other programs


class SignIn:
    """The page on which a browser signs in.

    Args:
        asking: says whose a token is.
        for_s: after which the browser forgets the cookie.
    """

    def __init__(self, asking: Authenticate, seal: Seal, for_s: int) -> None:
        self._asking, self._seal, self._for_s = asking, seal, for_s

    def token_of(self, scope: Scope) -> str | None:
        """The token for which a browser got its cookie; None when it has none that holds."""
        return self._seal.open(cookie_of(Headers(scope=scope), _cookie_name(scope)))

    def page(self, status: int, where: str = "/", *, token: str = "", user: str = "", fault: str = "") -> Response:
        """The form for a token.

        Args:
            where: the page that is opened then.
            token, user: of an address that a page led to, be it one of ours, whose texts others may have written: who opens it
                must say so, lest somebody has them write into a memory that is not theirs.
        """
        html = templates().get_template("sign_in.html.j2")
        shared = {"static": f"/static/{static_version()}", "where": _inside(where)}
        return HTMLResponse(html.render(**shared, token=token, user=user, fault=fault), status)

    async def trade(self, scope: Scope, query: Sequence[tuple[str, str]]) -> Response:
        """Trade the token in an address for a cookie, at the same address without it."""
        token = next(value for name, value in query if name == "token")
        where = without_token(scope["path"], query)
        user = await self._asking(token)
        if user is not None and Headers(scope=scope).get("sec-fetch-site") not in _BY_HAND:
            answer = self.page(200, where, token=token, user=user.name)
        else:
            answer = await self._let_in(scope, token, where)
        answer.headers["Referrer-Policy"] = "origin"  # what a page at this address fetches or sends would tell the token
        return answer

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        """Answer /sign-in and /sign-out; forms come from our own pages."""
        if scope["method"] in SAFE_METHODS:
            return self.page(200) if scope["path"] == "/sign-in" else RedirectResponse("/sign-in", 303)
        if scope["path"] == "/sign-out":
            gone = RedirectResponse("/sign-in", 303)
            gone.delete_cookie(_cookie_name(scope), secure=_is_secure(scope), httponly=True, samesite="lax")
            return gone
        body = bytearray()
        async for chunk in Request(scope, receive).stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                return PlainTextResponse("This is no token.", 413)
        fields = dict(parse_qsl(body.decode("latin-1")))
        return await self._let_in(scope, fields.get("token", "").strip(), fields.get("where", "/"))

    async def _let_in(self, scope: Scope, token: str, where: str) -> Response:
        if await self._asking(token) is None:
            return self.page(401, where, fault="This token is nobody's, or it has run out.")
        cookie = self._seal.close(token)
        if cookie is None:
            return self.page(400, where, fault=f"A browser can't keep a token of more than {MAX_TOKEN_BYTES} bytes.")
        answer = RedirectResponse(_inside(where), 303)
        name, is_secure = _cookie_name(scope), _is_secure(scope)
        answer.set_cookie(name, cookie, max_age=self._for_s, secure=is_secure, httponly=True, samesite="lax")
        return answer


def _is_secure(scope: Scope) -> bool:
    return bool(scope.get("scheme") == "https")


def _cookie_name(scope: Scope) -> str:
    """Over TLS a name that no other host can set; else one of the port, as browsers send cookies to all ports of a host."""
    return "__Host-mdmemory" if _is_secure(scope) else f"mdmemory-{(scope.get('server') or ('', 0))[1]}"


def _inside(where: str) -> str:
    """An address on this server: two slashes, or a backslash, would lead to another host."""
    path, mark, query = where.partition("?")
    return "/" + quote(path.lstrip("/\\"), safe="/%") + mark + quote(query, safe="=&%+")
