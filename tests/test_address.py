"""Where a server listens: what is refused, and which names are answered."""

from __future__ import annotations

import pytest

from mdmemory.address import Address
from mdmemory.errors import ConfigError

TOKEN = "long-and-random"


def test_addresses() -> None:
    """The loopback needs no token, by whatever name; an empty token is none."""
    for host in ("127.0.0.1", "127.0.0.53", "::1", "localhost"):
        Address(host).check()
    for host in ("0.0.0.0", "::", "", "example.org", "10.0.0.1"):
        with pytest.raises(ConfigError, match="token"):
            Address(host, token="").check()
    Address("10.0.0.1", token=TOKEN).check()


def test_names() -> None:
    """The loopback is answered under its three names, another address under its own and those that were given, a wildcard never."""
    assert Address().hosts == ("127.0.0.1", "localhost", "[::1]", "127.0.0.1")
    assert Address("::1").url(80) == "http://[::1]:80" and "[fe80::1]" in Address("fe80::1").hosts
    assert Address("0.0.0.0", token=TOKEN, names=("notes.example.org",)).hosts[3:] == ("notes.example.org",)
