"""What users may take: counted exactly, over all processes that serve."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from command import environment

from mdmemory.service.rates import Rates, TooMuch
from mdmemory.service.users import Limits, User

ALICE, BOB = User("alice"), User("bob")
TAKE = """
import sys
from mdmemory.service.rates import Rates, TooMuch
from mdmemory.service.users import Limits, User
rates, taken = Rates(sys.argv[1], int(sys.argv[2])), 0
for _ in range(200):
    try:
        with rates.taking(User("alice"), Limits(per_minute=40, at_once=1000)):
            taken += 1
    except TooMuch:
        pass
print(taken)
"""
HOLD = """
import sys
from mdmemory.service.rates import Rates
from mdmemory.service.users import Limits, User
with Rates(sys.argv[1], int(sys.argv[2])).taking(User("alice"), Limits(at_once=2)):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_a_quarter_of_a_minute_may_come_at_once() -> None:
    """Then it is one by one, and who waits as long as they are told is let in; others are not concerned."""
    rates, limits = Rates(), Limits(per_minute=60)
    for _ in range(15):
        with rates.taking(ALICE, limits):
            pass
    with pytest.raises(TooMuch) as much, rates.taking(ALICE, limits):
        pass
    assert much.value.limit == "per_minute" and 0 < much.value.wait_s <= 1
    with rates.taking(BOB, limits):
        pass
    time.sleep(much.value.wait_s + 0.001)
    with rates.taking(ALICE, limits):
        pass
    with pytest.raises(TooMuch), rates.taking(User("slow"), Limits(per_minute=1)), rates.taking(User("slow"), Limits(per_minute=1)):
        pass


def test_as_many_as_are_allowed_run_at_once() -> None:
    """A request that ended makes room, one that failed too; streams are counted apart."""
    rates, limits = Rates(), Limits(at_once=2, streams=1)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(rates.taking(ALICE, limits))
        stack.enter_context(rates.taking(ALICE, limits, "stream"))
        stack.enter_context(rates.taking(BOB, limits))
        for kind in ("request", "stream"):
            with pytest.raises(TooMuch, match="at_once" if kind == "request" else "streams"), rates.taking(ALICE, limits, kind):
                pass
    with pytest.raises(ZeroDivisionError), rates.taking(ALICE, limits):
        raise ZeroDivisionError
    with rates.taking(ALICE, limits), rates.taking(ALICE, limits):
        pass


def test_several_processes_count_together(tmp_path: Path) -> None:
    """Four processes that ask 800 times at the same time get what one would have got: a quarter of a minute's, and what passed."""
    file, begun = str(tmp_path / "counts"), time.monotonic()
    started = [
        subprocess.Popen([sys.executable, "-c", TAKE, file, str(n)], env=environment(), stdout=subprocess.PIPE) for n in range(4)
    ]
    taken = sum(int(process.communicate(timeout=60)[0]) for process in started)
    assert 10 <= taken <= 10 + (time.monotonic() - begun) * 40 / 60 + 1


def test_what_a_killed_process_had_begun_is_taken_back(tmp_path: Path) -> None:
    """A worker that dies in the middle of requests does not lock its users out."""
    file, limits = str(tmp_path / "counts"), Limits(at_once=2)
    rates = Rates(file, 1)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, file, "7"], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"in\n"
        with rates.taking(ALICE, limits), pytest.raises(TooMuch), rates.taking(ALICE, limits):
            pass
        process.kill()
    with rates.taking(ALICE, limits), pytest.raises(TooMuch), rates.taking(ALICE, limits):
        pass
    rates.forget(7)
    with rates.taking(ALICE, limits), rates.taking(ALICE, limits):
        pass


def test_where_nothing_can_be_counted_users_are_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A full disk below the counts is logged, and stops nobody."""
    rates = Rates(str(tmp_path / "counts"))
    rates.close()
    with rates.taking(ALICE, Limits(at_once=1)), rates.taking(ALICE, Limits(at_once=1)):
        pass
    assert "can't be counted" in caplog.text


def test_what_ended_while_nothing_could_be_counted_is_counted_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A request whose end could not be written takes no room for ever."""
    file, limits = tmp_path / "counts", Limits(at_once=1)
    rates = Rates(str(file))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        with rates.taking(ALICE, limits):
            other.execute("BEGIN IMMEDIATE")  # as good as a full disk: nobody else can write
        other.execute("ROLLBACK")
    assert "can't be counted yet" in caplog.text
    for _ in range(3):
        with rates.taking(ALICE, limits), pytest.raises(TooMuch), rates.taking(ALICE, limits):
            pass
    rates.close()
