"""The PostgreSQL backend, on a real server."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from database import Server

from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import Backend
from mdmemory.testing.conformance import BackendConformance

_numbers = itertools.count()


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests, each of which has a folder of its own."""
    return postgres.new_database()


class TestPostgres(BackendConformance):
    """What every backend must do."""

    @pytest.fixture(autouse=True)
    def _database(self, url: str) -> None:
        self.url = url

    async def make_backend(self, tmp_path: Path) -> Backend:
        """Make one for a folder that does not exist yet."""
        return PostgresBackend.from_url(f"{self.url}?folder=users/{next(_numbers)}")
