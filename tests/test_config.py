"""Settings: their defaults hold, and what can't be is refused when it is set."""

from __future__ import annotations

from typing import Any

import pytest

from mdmemory.config import Config
from mdmemory.errors import ConfigError


@pytest.mark.parametrize(
    "setting",
    [
        {"index_max_lines": 0}, {"index_max_bytes": -1}, {"hint_max_tokens": 0}, {"selector_max_files": 0}, {"half_life_days": 0},
        {"selector_timeout_s": 0}, {"min_score": 1.1}, {"min_score": -0.1}, {"min_score": float("nan")}, {"hint_max_files": -1},
        {"extract_every": 0}, {"extract_timeout_s": 0}, {"summary_over": -1}, {"secrets": "hide"},
        {"max_loss": 1.1}, {"consolidate": "yes"}, {"extract": "no"},
        {"hint_wait_s": -1}, {"half_life_days": float("nan")}, {"hint_wait_s": float("nan")}, {"selector_timeout_s": float("nan")},
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_refused(setting: dict[str, Any]) -> None:
    """A number out of its range, or no number at all, is an error that names it."""
    with pytest.raises(ConfigError, match=next(iter(setting))):
        Config(**setting)


def test_limits_may_be_reached() -> None:
    """No hint files, no wait and any score are settings one may choose."""
    config = Config(hint_max_files=0, hint_wait_s=0, min_score=1)
    assert (config.hint_max_files, config.hint_wait_s, config.min_score) == (0, 0, 1)
    assert Config() == Config()
