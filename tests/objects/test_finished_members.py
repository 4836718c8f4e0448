"""Pods of groups that have ended: which pods these are, and how little is kept of them."""

from __future__ import annotations

import msgspec
import pytest

from stowplan.kube.resources import RESOURCES
from stowplan.objects import kinds
from stowplan.objects.applications import POD_GROUP
from stowplan.objects.finished_members import FinishedMember, finished_member
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod


def a_finished_pod(phase: str, **labels: str) -> Pod:
    pod = a_pod("p", labels={"app": "web", **labels}, annotations={"long": "text"})
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase))


@pytest.mark.parametrize(
    ("phase", "labels", "group"),
    [
        pytest.param("Succeeded", {POD_GROUP: "g"}, "default/g", id="succeeded"),
        pytest.param("Failed", {POD_GROUP: "g"}, "default/g", id="failed"),
        pytest.param("Failed", {POD_GROUP: ""}, "", id="an empty name is no group"),
        pytest.param("Running", {POD_GROUP: "g"}, None, id="one that runs"),
        pytest.param("Unknown", {POD_GROUP: "g"}, None, id="one that may run"),
        pytest.param("Failed", {}, None, id="no group"),
    ],
)
def test_which_pods_these_are(phase: str, labels: dict[str, str], group: str | None) -> None:
    found = finished_member(a_finished_pod(phase, **labels))
    assert (None if found is None else found.group) == group


def test_only_what_counts_is_kept() -> None:
    document = msgspec.json.encode(a_finished_pod("Failed", **{POD_GROUP: "g"}), enc_hook=str)
    found = RESOURCES["FinishedMember"].decode(document)
    assert isinstance(found, FinishedMember) and (found.key, found.phase) == ("default/p", "Failed")
    assert (found.labels, found.annotations) == ({POD_GROUP: "g"}, {})
    assert found == finished_member(kinds.decode(Pod, document))
