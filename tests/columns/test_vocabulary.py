"""Codes for repeated values: one for each value in use, reused afterwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.vocabulary import Vocabulary


def test_code_0_is_always_in_use() -> None:
    words: Vocabulary[str] = Vocabulary("nothing")
    assert (words.hold("nothing"), len(words)) == (0, 1)
    words.release(0)
    assert words.codes == {"nothing": 0}


def test_equal_values_share_a_code_until_the_last_release() -> None:
    words: Vocabulary[str] = Vocabulary("")
    first, second = words.hold("a"), words.hold("a")
    assert first == second != 0
    words.release(first)
    assert words.codes["a"] == first
    words.release(first)
    assert "a" not in words.codes and words.values[first] is None


def test_a_free_code_is_reused_and_the_version_grows() -> None:
    words: Vocabulary[str] = Vocabulary("")
    code = words.hold("a")
    before = words.version
    words.hold("a")
    assert words.version == before
    words.release(code)
    words.release(code)
    assert words.version > before
    assert (words.hold("b"), len(words)) == (code, 2)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans())))
def test_codes_stand_for_held_values_in_any_order(steps: list[tuple[str, bool]]) -> None:
    words: Vocabulary[str] = Vocabulary("")
    held: list[tuple[str, int]] = []
    most = 0
    for value, comes in steps:
        if comes:
            held.append((value, words.hold(value)))
        elif held:
            words.release(held.pop(0)[1])
        most = max(most, len({each for each, _ in held}))
        assert all(words.values[code] == each and words.codes[each] == code for each, code in held)
        assert set(words.codes) == {"", *(each for each, _ in held)}
    assert len(words) == most + 1
