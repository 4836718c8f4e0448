"""Who serves a scheduler name, by leases and by what pods show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from stowplan.apps.explain.schedulers import NOBODY, SERVES, STOPPED, UNKNOWN, Schedulers
from stowplan.objects.pod_parts import PodCondition
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
KNOWN = ("default-scheduler", "stowplan")


def lease(name: str, holder: str, renewed: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(NOW - renewed, UTC).isoformat()
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": at}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}


def told(name: str, reason: str = "Unschedulable", age: float = 0.0) -> Pod:
    pod = a_pod("told", schedulerName=name)
    created = datetime.fromtimestamp(NOW - age, UTC)
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=created))
    condition = PodCondition("PodScheduled", "False", reason)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=(condition,)))


@pytest.mark.parametrize(
    ("name", "leases", "pods", "state", "by"),
    [
        pytest.param(
            "default-scheduler",
            [lease("kube-scheduler", "host_1", 3)],
            [],
            SERVES,
            "kube-scheduler",
            id="kube-scheduler",
        ),
        pytest.param(
            "default-scheduler", [lease("kube-scheduler", "host_1", 9999)], [], STOPPED, "kube-scheduler", id="stopped"
        ),
        pytest.param(
            "default-scheduler", [lease("kube-scheduler", "stowplan:h", 3)], [], SERVES, "Stowplan", id="in its place"
        ),
        pytest.param("default-scheduler", [], [], UNKNOWN, "", id="kube-scheduler may run without a lease"),
        pytest.param("default-scheduler", None, [], UNKNOWN, "", id="leases cannot be read"),
        pytest.param("stowplan", [lease("stowplan", "stowplan:h", 3)], [], SERVES, "Stowplan", id="ours"),
        pytest.param(
            "stowplan", [lease("kube-scheduler", "host_1", 3)], [], NOBODY, "", id="kube-scheduler does not serve ours"
        ),
        pytest.param("stowplan", None, [], UNKNOWN, "", id="ours, leases cannot be read"),
        pytest.param("foo", [lease("kube-scheduler", "host_1", 3)], [], NOBODY, "", id="another name"),
        pytest.param("foo", None, [], NOBODY, "", id="another name, leases cannot be read"),
        pytest.param("foo", [lease("foo", "host_1", 3)], [], SERVES, "foo", id="a lease of that name"),
        pytest.param("foo", [], [a_pod("x", node="n", schedulerName="foo")], UNKNOWN, "", id="it bound a pod"),
        pytest.param("foo", [], [told("foo")], UNKNOWN, "", id="it refused a pod"),
        pytest.param(
            "stowplan",
            [lease("stowplan", "stowplan:h", 99)],
            [told("stowplan", age=90)],
            STOPPED,
            "Stowplan",
            id="it refused a pod before its lease ran out",
        ),
        pytest.param(
            "stowplan",
            [lease("stowplan", "stowplan:h", 99)],
            [told("stowplan", age=80)],
            UNKNOWN,
            "",
            id="somebody refused a pod that came after its lease ran out",
        ),
        pytest.param("foo", [], [told("foo", "SchedulingGated")], NOBODY, "", id="gates are no sign of it"),
    ],
)
def test_who_serves(name: str, leases: list[dict[str, Any]] | None, pods: list[Pod], state: str, by: str) -> None:
    found = Schedulers(leases, pods, KNOWN, "stowplan", NOW).of(name)
    assert (found.state, found.by) == (state, by)
    assert found.absent is (state in (STOPPED, NOBODY))


def test_the_sentence_says_since_when_a_lease_was_not_renewed() -> None:
    found = Schedulers([lease("kube-scheduler", "host_1", 7300)], [], KNOWN, "stowplan", NOW).of("default-scheduler")
    assert found.text == "nobody serves default-scheduler: kube-scheduler last renewed its lease 2 h ago"
