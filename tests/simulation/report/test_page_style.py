"""The colours of the page can be read and told apart: contrasts as WCAG 2 computes them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from stowplan.simulation.report.page_style import DARK, LIGHT


def colours(text: str) -> dict[str, tuple[float, float, float]]:
    """The colours by name, as parts of red, green and blue."""
    return {
        name: (int(found[:2], 16) / 255, int(found[2:4], 16) / 255, int(found[4:], 16) / 255)
        for name, found in re.findall(r"--([a-z0-9]+): #([0-9a-f]{6});", text)
    }


def luminance(colour: tuple[float, float, float]) -> float:
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_lines_stand_out_from_the_paper(scheme: str) -> None:
    found = colours(scheme)
    for text in ("ink", "soft"):
        assert min(contrast(found[text], found[paper]) for paper in ("paper", "tile")) >= 4.5
    assert min(contrast(found["ink"], found[paper]) for paper in ("added", "removed")) >= 4.5
    lines = [name for name in found if name[0] == "c"]
    assert [name for name in lines if contrast(found[name], found["paper"]) < 3] == [] and len(lines) == 8


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_fuller_node_is_further_from_the_paper(scheme: str) -> None:
    found = colours(scheme)
    contrasts = [contrast(found[f"h{each}"], found["paper"]) for each in range(6)]
    assert contrasts == sorted(contrasts) and contrasts[5] > 10
    assert all(after / before > 1.2 for before, after in pairwise(contrasts))


def test_light_and_dark_have_the_same_colours() -> None:
    assert colours(LIGHT).keys() == colours(DARK).keys() and len(colours(LIGHT)) == 28
