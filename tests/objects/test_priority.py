"""The priority of a pod by its class."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.meta import ObjectMeta
from stowplan.objects.priority import with_priority
from stowplan.objects.workloads import PriorityClass
from stowplan.testing.builders import a_pod

HIGH = PriorityClass(ObjectMeta(name="high"), value=1000, preemption_policy="Never")
USUAL = PriorityClass(ObjectMeta(name="usual"), value=5, global_default=True)
CLASSES = {"high": HIGH, "usual": USUAL}


@pytest.mark.parametrize(
    ("wishes", "classes", "expected"),
    [
        pytest.param({"priorityClassName": "high"}, CLASSES, (1000, "Never"), id="its class"),
        pytest.param({}, CLASSES, (5, None), id="no class named: the one for all"),
        pytest.param({}, {"high": HIGH}, (0, None), id="no class named, and none for all"),
        pytest.param({"priorityClassName": "lost"}, CLASSES, (0, None), id="a class that is not there"),
        pytest.param(
            {"priorityClassName": "system-node-critical"}, {}, (2_000_001_000, None), id="a class of the system"
        ),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            CLASSES,
            (1000, "PreemptLowerPriority"),
            id="its own policy wins over its class's",
        ),
    ],
)
def test_priority(wishes: dict[str, Any], classes: dict[str, PriorityClass], expected: Any) -> None:
    pod = with_priority(a_pod(**wishes), classes)
    assert (pod.priority, pod.spec.preemption_policy) == expected
