"""Keys of a queueSort plugin: which can be compared with all others, and what becomes of pods with other keys."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from stowplan.engine.queue.sort_keys import IncomparableKeyError, SortKeys
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Fickle:
    """Compares with itself only."""

    def __lt__(self, other: object) -> bool:
        if other is not self:
            raise TypeError
        return False


class Touchy(str):
    def __lt__(self, other: object) -> bool:
        raise SystemExit


class Odd(int):
    def __lt__(self, other: object) -> bool:
        raise ValueError

    def __gt__(self, other: object) -> bool:
        raise ValueError


@pytest.mark.parametrize(
    ("plain", "key", "usable"),
    [
        pytest.param((1, 2.0), (2, 1), True, id="numbers are numbers"),
        pytest.param((1, "a"), (1, "b"), True, id="texts"),
        pytest.param((1, None), (1, None), True, id="both have None"),
        pytest.param((1, None), (1, "a"), False, id="a text for None"),
        pytest.param((1, "a"), (1, b"a"), False, id="bytes for a text"),
        pytest.param((1, "a"), ("a", 1), False, id="another order"),
        pytest.param((1,), (1, "a"), True, id="a longer key"),
        pytest.param((1, (2, "a")), (1, (2, "b")), True, id="nested"),
        pytest.param((1, (2, "a")), (1, (2, 3)), False, id="nested, a number for a text"),
        pytest.param((1, NOON), (1, NOON), True, id="moments"),
        pytest.param((1, NOON), (1, NOON.replace(tzinfo=None)), False, id="a moment without a zone"),
        pytest.param((1, Fickle()), (1, Fickle()), True, id="a type of the plugin's own"),
        pytest.param((1, 0), (1, Decimal(5)), True, id="a Decimal for an int"),
        pytest.param((1, 0), (1, Decimal("NaN")), True, id="no number"),
        pytest.param((1, 0.5), (1, np.float64(2)), True, id="a number of NumPy's"),
        pytest.param((1, "a"), (1, Touchy("b")), False, id="a text of the plugin's own"),
        pytest.param((1, Touchy("a")), (1, Touchy("b")), True, id="two of them"),
        pytest.param((1, 2), (1, Odd(1)), True, id="an int of the plugin's own, which does not compare"),
        pytest.param(5, 3, True, id="no tuple"),
        pytest.param((1,), 3, False, id="a number for a tuple"),
    ],
)
def test_a_key_is_usable_if_it_is_like_that_of_a_plain_pod(plain: Any, key: Any, usable: bool) -> None:
    keys = SortKeys()
    keys.measure(plain)
    first = keys.usable(plain)
    if not usable:
        with pytest.raises(IncomparableKeyError, match="cannot be compared"):
            keys.usable(key)
        return
    for _ in range(2):
        found = keys.usable(key)
        assert (found < first) in (True, False) and (first < found) in (True, False)


def test_longer_keys_must_agree_with_each_other() -> None:
    keys = SortKeys()
    keys.measure((1,))
    keys.usable((1, "a"))
    with pytest.raises(IncomparableKeyError):
        keys.usable((1, 2))


def test_the_first_key_does_not_decide_for_all_others() -> None:
    keys = SortKeys()
    keys.measure((1, None))
    odd = keys.usable((1, "a"))
    assert odd < keys.usable((2, "b")), "no plain key has come yet"
    assert keys.usable((9, None)) < odd, "both are in the queue, and compare"
    with pytest.raises(IncomparableKeyError):
        keys.usable((1, "a"))


class ByLabel:
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        return -pod.priority, pod.labels.get("bad")


class Ending:
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        if "bad" in pod.labels:
            raise SystemExit(3)
        return queued_at


@pytest.mark.parametrize(
    ("sort", "problem"),
    [
        pytest.param(ByLabel(), "plugin \"Sort\" failed at sort_key: the key (0, 'yes') is (number, str)", id="other"),
        pytest.param(Ending(), 'plugin "Sort" failed at sort_key: SystemExit: 3 (test_sort_keys.py:', id="it exits"),
    ],
)
@pytest.mark.parametrize("bad_first", [False, True])
def test_pods_without_a_usable_key_fail_by_name_and_all_others_are_bound(
    sort: object, problem: str, bad_first: bool
) -> None:
    default = a_profile()
    profile = Profile("default-scheduler", {**default.points, "queueSort": (EnabledPlugin("Sort", sort),)})
    world = World(nodes=[a_node("a")], profiles={"default-scheduler": profile})
    pods = [a_pod(f"p{at}", labels={"bad": "yes"} if (at % 2 == 0) == bad_first else {}) for at in range(20)]
    world.submit(*pods)
    world.run()
    good = {pod.name for pod in pods if not pod.labels}
    assert good <= set(world.bindings)
    failed = [pod for pod in world.pods() if pod.labels and not pod.node_name]
    assert len(failed) >= 9, "the first one may have come before any plain pod"
    condition = failed[-1].condition("PodScheduled")
    assert condition is not None and condition.message.startswith(problem)
