"""The service as a part of another program: with its own way to know users, and conversations in the same memories."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from command import note, write
from mcp_clients import called, over_http
from service_app import served
from service_server import call, running

from mdmemory.errors import InvalidArguments
from mdmemory.folder.mounts import Mount
from mdmemory.service.app import ServiceApp
from mdmemory.service.serving import Serving
from mdmemory.service.users import Limits, User
from mdmemory.settings import Settings

KEY = "the key of the sign-on, of at least 32 bytes"


async def by_jwt(token: str) -> User | None:
    """Whom a JWT of the house names."""
    try:
        claims = jwt.decode(token, KEY, algorithms=["HS256"], options={"require": ["exp", "sub"]})
    except jwt.InvalidTokenError:
        return None
    return User(claims["sub"], read_only="write" not in claims.get("scope", "").split())


def token_for(name: str, scope: str = "write", *, key: str = KEY, minutes: float = 5) -> str:
    """A JWT."""
    return jwt.encode({"sub": name, "scope": scope, "exp": datetime.now(UTC) + timedelta(minutes=minutes)}, key, "HS256")


def serving(home: Path, **more: Any) -> Serving:
    """Memories below a folder."""
    return Serving(f"{home}/{{user}}", "x" * 40, **more)


async def status_of(url: str, token: str) -> int:
    """What a list of tools is answered with."""
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    return answer.status_code


async def test_a_program_says_whose_a_token_is(tmp_path: Path) -> None:
    """JWTs with a scope; one of another key, one that has run out and one for a name that leads elsewhere let nobody in."""
    async with served(ServiceApp(serving(tmp_path), by_jwt)) as url:
        async with over_http(f"{url}/mcp", token=token_for("alice")) as client:
            await called(client, "Write", file_path="user/home.md", content=note("Home", "where I live"))
        async with over_http(f"{url}/mcp", token=token_for("alice", "read")) as client:
            assert "Write" not in {tool.name for tool in (await client.list_tools()).tools}
        wrong: Mapping[str, str] = {
            "another key": token_for("alice", key=KEY * 2),
            "too old": token_for("alice", minutes=-1),
            "a path": token_for("../alice"),
            "another case": token_for("Alice"),
        }
        assert {why: await status_of(url, token) for why, token in wrong.items()} == dict.fromkeys(wrong, 401)
    assert [path.name for path in tmp_path.iterdir()] == ["alice"]


async def test_a_browser_keeps_no_longer_than_its_token(tmp_path: Path) -> None:
    """The cookie is asked about as the token is; one that is too long for a cookie is said to be."""
    known = {"short": User("alice"), "y" * 3000: User("bob")}

    async def authenticate(token: str) -> User | None:
        return known.get(token)

    async with (
        served(ServiceApp(serving(tmp_path), authenticate)) as url,
        httpx2.AsyncClient(trust_env=False, base_url=url) as client,
    ):
        await client.get("/?token=short")
        assert (await client.get("/")).status_code == 200
        del known["short"]
        assert (await client.get("/")).status_code == 401
        answer = await client.post("/sign-in", data={"token": "y" * 3000}, headers={"origin": url})
        assert answer.status_code == 400 and "2000 bytes" in answer.text


async def test_a_sign_in_runs_out(tmp_path: Path) -> None:
    """After `session_s` the cookie is worth nothing, whatever the browser thinks."""

    async def authenticate(token: str) -> User | None:
        return User("alice")

    from mdmemory.service.seal import Seal

    async with served(ServiceApp(serving(tmp_path, session_s=100), authenticate)) as url:
        seal, name = Seal("x" * 40, 100), f"mdmemory-{url.rpartition(':')[2]}"
        for age_s, status in ((50, 200), (150, 401)):
            when = int(datetime.now(UTC).timestamp()) - age_s
            cookie = seal._fernet.encrypt_at_time(b"token", when).decode()
            async with httpx2.AsyncClient(trust_env=False, cookies={name: cookie}) as client:
                assert (await client.get(url)).status_code == status


async def test_a_conversation_and_the_doors_share_a_memory(tmp_path: Path) -> None:
    """What a program's own turn writes is read over MCP, in one open memory."""
    app = ServiceApp(serving(tmp_path), by_jwt)
    async with served(app) as url:
        async with app.memory(User("alice")) as memory:
            turn = await memory.session("monday").turn("Hello.")
            await turn.tools.call("Write", {"file_path": "user/home.md", "content": note("Home", "where I live")})
            await turn.finish("Good morning.")
        async with over_http(f"{url}/mcp", token=token_for("alice")) as client:
            assert "where I live" in await called(client, "Read", file_path="user/home.md")
    assert "Good morning." in next((tmp_path / "alice/journal").rglob("*.md")).read_text()


async def test_a_team_s_folder_is_mounted_for_all(tmp_path: Path) -> None:
    """A mount that all may read lies beside what is theirs alone; a mount's location may be a user's, too."""
    write(tmp_path / "team/plan.md", note("Plan", "of the team"))
    write(tmp_path / "drafts-alice/own.md", note("Own", "of alice"))
    mounts = {"team/": Mount(f"{tmp_path}/team", access="read"), "drafts/": Mount(f"{tmp_path}/drafts-{{user}}")}
    home = Serving(f"{tmp_path}/home/{{user}}", "x" * 40, Settings(mounts=mounts))
    async with served(ServiceApp(home, by_jwt)) as url:
        for name, sees in (("alice", True), ("bob", False)):
            async with over_http(f"{url}/mcp", token=token_for(name)) as client:
                assert "of the team" in await called(client, "Read", file_path="team/plan.md")
                result = await client.call_tool("Read", {"file_path": "drafts/own.md"})
                assert result.is_error is not sees
                denied = await client.call_tool("Write", {"file_path": "team/new.md", "content": note("N", "x")})
                assert denied.is_error


async def test_a_file_with_settings_holds_for_every_memory(tmp_path: Path) -> None:
    """Its location has the place of the user, its relative paths begin where it lies, and its mounts are each user's."""
    write(tmp_path / "shared/plan.md", note("Plan", "of the team"))
    write(tmp_path / "memory.yaml", "location: memories/{user}\nmounts:\n  team/: {location: shared, access: read}\n")
    with running(tmp_path, "--config", "memory.yaml") as service:
        assert "of the team" in call(service, service.tokens["alice"], "Read", file_path="team/plan.md")
        call(service, service.tokens["bob"], "Write", file_path="user/home.md", content=note("Home", "of bob"))
    assert (tmp_path / "memories/bob/user/home.md").exists()


async def test_the_history_names_the_client(tmp_path: Path) -> None:
    """Who changed what is told by the name that a client has for itself, as far as its protocol says it."""
    async with served(ServiceApp(serving(tmp_path), by_jwt)) as url:
        for mode, name in (("auto", "test-http"), ("legacy", "mcp")):
            async with over_http(f"{url}/mcp", mode, token=token_for("alice")) as client:
                await called(client, "Write", file_path=f"user/{mode}.md", content=note("Home", "where I live"))
            assert f'"agent:{name}"' in (tmp_path / "alice/.mdmemory/log.jsonl").read_text().splitlines()[-2]


async def test_a_failing_question_lets_nobody_in(tmp_path: Path) -> None:
    """When the program's own check breaks, the answer is an error with an id, and no page."""

    async def authenticate(token: str) -> User | None:
        raise ConnectionError("the directory is away, says SECRETWORD")

    async with served(ServiceApp(serving(tmp_path), authenticate)) as url, httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{url}/?token=x")
        assert answer.status_code == 500 and "SECRETWORD" not in answer.text
        assert answer.headers["x-request-id"] in answer.text


async def test_limits_come_with_the_user(tmp_path: Path) -> None:
    """A user may have bounds of their own, which go before those of the service."""

    async def authenticate(token: str) -> User | None:
        return User(token, limits=Limits(per_minute=4) if token == "few" else None)

    async with served(ServiceApp(serving(tmp_path, limits=Limits(per_minute=8)), authenticate)) as url:
        assert [await status_of(url, "few") for _ in range(3)] == [200, 429, 429]
        assert [await status_of(url, "many") for _ in range(4)] == [200, 200, 429, 429]
    with pytest.raises(InvalidArguments):
        User("a user")
