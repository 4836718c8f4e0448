"""What we write is read alike by Kubernetes' rules and by PyYAML's."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects import bounded_yaml, yaml_text

WORDS = (
    "y",
    "Y",
    "n",
    "N",
    "yes",
    "on",
    "off",
    "null",
    "~",
    "1",
    "1.0",
    "1e3",
    "0x1f",
    "22:30",
    "2024-01-31",
    "",
    "<<",
)


@pytest.mark.parametrize("word", WORDS)
def test_a_text_stays_a_text(word: str) -> None:
    written = yaml_text.dump({"name": word, word or "empty": [word]})
    assert bounded_yaml.load(written) == yaml.safe_load(written) == {"name": word, word or "empty": [word]}


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS[:-1]), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_values_come_back(value: Any) -> None:
    assert bounded_yaml.load(yaml_text.dump(value)) == value


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    both = {"a": 1}
    assert yaml_text.dump({"x": both, "y": both}) == "x:\n  a: 1\n'y':\n  a: 1\n"
