"""Descriptors: the program itself always has some left."""

from __future__ import annotations

import resource

import pytest

from stowplan.serving import descriptors


class Limit:
    """RLIMIT_NOFILE of a process that does not exist."""

    def __init__(self, soft: int, hard: int, *, fixed: bool = False) -> None:
        self.now, self.fixed = (soft, hard), fixed

    def get(self, _what: int) -> tuple[int, int]:
        return self.now

    def set(self, _what: int, wanted: tuple[int, int]) -> None:
        if self.fixed:
            raise PermissionError
        self.now = wanted


def with_limit(monkeypatch: pytest.MonkeyPatch, limit: Limit) -> None:
    monkeypatch.setattr(resource, "getrlimit", limit.get)
    monkeypatch.setattr(resource, "setrlimit", limit.set)


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        pytest.param(Limit(1024, 4096), 4096, id="up to the hard limit"),
        pytest.param(Limit(1024, 1024), 1024, id="nothing to raise"),
        pytest.param(Limit(1024, 1 << 30), 1 << 16, id="not beyond what is of use"),
        pytest.param(Limit(1024, resource.RLIM_INFINITY), 1 << 16, id="no hard limit"),
        pytest.param(Limit(1 << 20, 1 << 30), 1 << 20, id="never lower"),
        pytest.param(Limit(1024, 4096, fixed=True), 1024, id="forbidden by a sandbox"),
    ],
)
def test_raises_the_limit(monkeypatch: pytest.MonkeyPatch, limit: Limit, found: int) -> None:
    with_limit(monkeypatch, limit)
    assert descriptors.raise_limit() == found


@pytest.mark.parametrize(("soft", "found"), [(65536, 512), (1024, 512), (512, 384), (100, 16)])
def test_connections_get_what_the_program_does_not_need(monkeypatch: pytest.MonkeyPatch, soft: int, found: int) -> None:
    with_limit(monkeypatch, Limit(soft, soft))
    assert descriptors.for_connections(512) == found
