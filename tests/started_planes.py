"""Which control planes a test session started; with several workers, each tells the controller in the end."""

from __future__ import annotations

from collections import Counter

import pytest

STARTED = pytest.StashKey[Counter[str]]()


def note_start(config: pytest.Config, version: str) -> None:
    """A control plane of this version was started."""
    started(config)[version] += 1
    if hasattr(config, "workeroutput"):  # what a worker tells the controller in the end
        config.workeroutput["started"] = dict(started(config))


def started(config: pytest.Config) -> Counter[str]:
    """How many control planes of which version."""
    return config.stash.setdefault(STARTED, Counter())
