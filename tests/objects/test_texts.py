"""Texts that are cut to a number of bytes."""

from __future__ import annotations

import pytest

from stowplan.objects.texts import described, shortened


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        pytest.param("short", 10, "short", id="a short text stays"),
        pytest.param("0123456789", 10, "0123456789", id="as long as it may be"),
        pytest.param("0123456789a", 10, "012345 ...", id="too long"),
        pytest.param("ééé", 10, "ééé", id="two bytes a character"),
        pytest.param("éééééé", 10, "ééé ...", id="no half of a character"),
        pytest.param("a\ud800b", 10, "a?b", id="half of a surrogate pair"),
        pytest.param("", 10, "", id="nothing"),
    ],
)
def test_shortened(text: str, most: int, cut: str) -> None:
    assert shortened(text, most) == cut
    assert len(shortened(text, most).encode()) <= most


def test_described() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert described(["x"]) == "['x']"
    assert described("x" * 100, 20) == "'xxxxxxxxxxxxxxx ..."
    assert described(Silent()) == "<Silent, whose repr raises RuntimeError>"
