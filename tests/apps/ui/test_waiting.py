"""Pending pods by cause, kept up to date pod by pod."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec

from stowplan.apps.ui.waiting import WaitingByCause
from stowplan.objects.pod_parts import PodCondition, PodStatus
from stowplan.objects.pods import Pod
from stowplan.testing import a_pod

START = datetime(2026, 1, 1, tzinfo=UTC)


def waiting(name: str, message: str = "", minutes: int = 0, node: str = "", reason: str = "Unschedulable") -> Pod:
    pod = a_pod(name, node=node)
    conditions = (PodCondition("PodScheduled", "False", reason, message),) if message else ()
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=START + timedelta(minutes=minutes))
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus(conditions=conditions))


def told(found: WaitingByCause) -> list[tuple[str, int, str]]:
    return [(each.cause, each.pods, each.oldest) for each in found.groups()]


CPU, MEMORY = "0/2 nodes are available: 2 Insufficient cpu.", "0/2 nodes are available: 2 Insufficient memory."


def test_pods_are_grouped_by_what_their_scheduler_says() -> None:
    found = WaitingByCause()
    for pod in (waiting("a", CPU, 5), waiting("b", CPU, 2), waiting("c", MEMORY), waiting("d"), waiting("e", node="n")):
        found.put(pod)
    assert told(found) == [
        ("Insufficient cpu", 2, "default/b"),
        ("Insufficient memory", 1, "default/c"),
        ("not tried yet", 1, "default/d"),
    ]
    found.put(waiting("b", MEMORY, 2))
    found.put(waiting("a", CPU, 5, node="n"))
    assert told(found) == [("Insufficient memory", 2, "default/c"), ("not tried yet", 1, "default/d")]
    found.remove("default/c")
    found.remove("default/nobody")
    assert told(found)[0] == ("Insufficient memory", 1, "default/b") and len(found) == 2


def test_gates_and_errors_are_causes_of_their_own() -> None:
    found = WaitingByCause()
    found.put(waiting("a", "gated", reason="SchedulingGated"))
    found.put(waiting("b", "boom", reason="SchedulerError"))
    assert {cause for cause, _, _ in told(found)} == {
        "held back by its scheduling gates", "the attempt ended in an error",
    }  # fmt: skip


def test_after_any_history_it_is_as_if_made_anew() -> None:
    draw, found, known = random.Random(3), WaitingByCause(), dict[str, Pod]()
    for _ in range(2000):
        name = f"p{draw.randrange(40)}"
        if draw.random() < 0.2:
            found.remove(f"default/{name}")
            known.pop(name, None)
            continue
        known[name] = waiting(name, draw.choice((CPU, MEMORY, "")), draw.randrange(9), draw.choice(("", "", "n")))
        found.put(known[name])
    anew = WaitingByCause()
    for pod in known.values():
        anew.put(pod)
    assert sorted(told(found)) == sorted(told(anew)) and set(found) == set(anew)
