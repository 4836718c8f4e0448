"""The order of clusters with hysteresis: the same as by moving one name after the other, and in fewer steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from stowplan.framework.placement.hysteresis import ordered


def one_by_one(names: Sequence[str], totals: Mapping[str, int], margin: int) -> list[str]:
    found: list[str] = []
    for name in names:
        place = len(found)
        while place and totals[name] > totals[found[place - 1]] + margin:
            place -= 1
        found.insert(place, name)
    return found


@given(st.lists(st.integers(-10, 10), max_size=30), st.integers(0, 8))
def test_the_order(given_totals: list[int], margin: int) -> None:
    totals = {f"c{number}": total for number, total in enumerate(given_totals)}
    assert ordered(list(totals), totals, margin) == one_by_one(list(totals), totals, margin)


class Counted(dict[str, int]):
    """Counts how often somebody looks at a total."""

    looks = 0

    def __getitem__(self, name: str) -> int:
        self.looks += 1
        return super().__getitem__(name)


def test_a_reversed_order_takes_no_look_at_each_pair() -> None:
    totals = Counted({f"c{number}": number * 10 for number in range(1000)})
    names = list(totals)
    assert ordered(names, totals, 5) == names[::-1]
    assert totals.looks <= 3 * len(names)
