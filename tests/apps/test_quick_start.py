"""Garbage collections during the start."""

from __future__ import annotations

import gc

import pytest

from stowplan.apps import quick_start


def test_imports_are_not_collected_and_not_walked_later() -> None:
    frozen = gc.get_freeze_count()
    try:
        with quick_start.imports():
            assert not gc.isenabled()
            kept: list[list[int]] = [[] for _ in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(kept)
    finally:
        gc.unfreeze()


def test_after_an_error_collections_go_on() -> None:
    with pytest.raises(ImportError), quick_start.imports():
        raise ImportError
    assert gc.isenabled()


def test_the_first_lists_are_collected_seldom() -> None:
    before = gc.get_threshold()
    with pytest.raises(OSError), quick_start.first_lists():
        assert gc.get_threshold()[0] > before[0]
        raise OSError
    assert gc.get_threshold() == before
