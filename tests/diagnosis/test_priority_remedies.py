"""Priorities that let a pod preempt: which class it gets. A class also says whether its pods may preempt at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.diagnosis.remedy import CreateObject, Operation, PatchObject, Remedy
from stowplan.diagnosis.search import diagnose
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state


def a_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Object:
    fields = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
    return kinds.convert(kinds.KINDS["PriorityClass"], fields)


def found(classes: list[Object], **pod: Any) -> Remedy:
    """The remedy that evicts a pod of priority 5."""
    victim = a_pod("victim", cpu=4, priority=5, node="a")
    state = a_state(nodes=[a_node("a", cpu=4)], pods=[victim], others=classes)
    remedies = diagnose(a_pod(cpu=4, **pod), state, a_profile()).remedies
    (remedy,) = [each for each in remedies if each.code in ("raise-priority", "allow-preemption")]
    assert (remedy.node, remedy.evicted) == ("a", ("default/victim",))
    return remedy


def class_of(remedy: Remedy) -> Any:
    operations = [each for change in remedy.changes if isinstance(change, PatchObject) for each in change.operations]
    return next(each.value for each in operations if each.path == "/spec/priorityClassName")


def created(remedy: Remedy) -> dict[str, int]:
    documents = [change.document for change in remedy.changes if isinstance(change, CreateObject)]
    return {each["metadata"]["name"]: each["value"] for each in documents}


@pytest.mark.parametrize(
    ("classes", "name", "made"),
    [
        pytest.param([a_class("high", 9)], "high", {}, id="a class that is high enough"),
        pytest.param(
            [a_class("polite", 9, "Never"), a_class("higher", 99)], "higher", {}, id="none that never preempts"
        ),
        pytest.param([a_class("polite", 9, "Never")], "priority-6", {"priority-6": 6}, id="a new class"),
        pytest.param(
            [a_class("priority-6", 3)], "priority-6-2", {"priority-6-2": 6}, id="a new class whose name is not taken"
        ),
    ],
)
def test_a_raised_priority_is_that_of_a_class_that_preempts(
    classes: list[Object], name: str, made: dict[str, int]
) -> None:
    remedy = found(classes)
    assert (remedy.code, class_of(remedy), created(remedy)) == ("raise-priority", name, made)


@pytest.mark.parametrize(
    ("classes", "name", "made"),
    [
        pytest.param([a_class("bold", 9)], "bold", {}, id="another class with the same priority"),
        pytest.param([], "priority-9", {"priority-9": 9}, id="a new class"),
    ],
)
def test_a_pod_that_never_preempts_gets_another_class(classes: list[Object], name: str, made: dict[str, int]) -> None:
    """Its class says that it does not, and admission lets no pod say otherwise."""
    polite = a_class("polite", 9, "Never")
    remedy = found([polite, *classes], priority=9, priorityClassName="polite", preemptionPolicy="Never")
    assert (remedy.code, class_of(remedy), created(remedy)) == ("allow-preemption", name, made)


def test_a_pod_that_never_preempts_and_has_a_low_priority_gets_a_class_with_both() -> None:
    polite = a_class("polite", 2, "Never")
    remedy = found([polite], priority=2, priorityClassName="polite", preemptionPolicy="Never")
    assert (remedy.code, created(remedy)) == ("raise-priority", {"priority-6": 6})
    (patch,) = [change for change in remedy.changes if isinstance(change, PatchObject)]
    assert Operation("replace", "/spec/preemptionPolicy", "PreemptLowerPriority") in patch.operations


def test_a_pod_that_may_preempt_keeps_the_priority_that_it_does_not_name() -> None:
    state = a_state(nodes=[a_node("a", cpu=4)], pods=[a_pod("victim", cpu=4, priority=-10, node="a")])
    pod = a_pod(cpu=4, preemptionPolicy="Never")
    nameless = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=None))
    remedies = diagnose(nameless, state, a_profile()).remedies
    (remedy,) = [each for each in remedies if each.code == "allow-preemption"]
    operation = Operation("replace", "/spec/preemptionPolicy", "PreemptLowerPriority")
    assert remedy.changes == (PatchObject("Pod", pod.key, (operation,)),)
