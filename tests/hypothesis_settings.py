"""How many examples Hypothesis draws, by the profile that `tests/conftest.py` loads."""

from __future__ import annotations

from hypothesis import settings


def max_examples() -> int:
    """Return the number of examples of the loaded profile."""
    loaded = settings.default
    assert loaded is not None, "tests/conftest.py loads a profile first"
    return loaded.max_examples


def at_most(examples: int) -> settings:
    """Return the loaded profile, limited to this many examples."""
    return settings(settings.default, max_examples=min(max_examples(), examples))
