"""Remedies as commands: each is words for a shell, on the right object, with a patch that can be applied."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from stowplan.apps.explain.kubectl_commands import Manifest, Owner, PodCount, PodOrigin, RemedyCommands
from stowplan.apps.explain.template_patch import completed, for_template
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, Operation, PatchObject

COST = "controller.kubernetes.io/pod-deletion-cost"
TOLERATE = Operation("add", "/spec/tolerations/-", {"key": "dedicated", "operator": "Exists"})
NOT_READY = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
LESS = Operation("replace", "/spec/containers/1/resources/requests/cpu", "4")
POD = {
    "spec": {
        "containers": [{"name": "proxy"}, {"name": "app", "resources": {"requests": {"cpu": "9"}}}],
        "tolerations": [NOT_READY],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
}
TEMPLATE = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "9"}}}]}}
DEPLOYMENT = {"spec": {"template": TEMPLATE}}
JOB_LABELS = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "job-name": "j"}
JOB = {"spec": {"selector": {}, "template": {"metadata": {"labels": JOB_LABELS}, **TEMPLATE}}}
NODE = {"metadata": {"labels": {"disk": "hdd"}}, "spec": {"taints": [{"key": "a b", "effect": "NoSchedule"}]}}
DOCUMENTS: dict[tuple[str, str], Mapping[str, Any]] = {
    ("Pod", "ns/web"): POD,
    ("Deployment", "ns/web"): DEPLOYMENT,
    ("StatefulSet", "ns/web"): DEPLOYMENT,
    ("Job", "ns/web"): JOB,
    ("Node", "n 1"): NODE,
}


def commands(*changes: ObjectChange, owner: str = "", flags: tuple[str, ...] = ()) -> tuple[str, ...]:
    def document(kind: str, key: str) -> Mapping[str, Any] | None:
        return DOCUMENTS.get((kind, key))

    origin = PodOrigin(Owner(owner, "ns/web") if owner else None)
    return RemedyCommands(document, lambda key: origin if key.startswith("ns/web") else None, flags).of(changes)


def pod_patch(*operations: Operation) -> PatchObject:
    return PatchObject("Pod", "ns/web", operations)


def patch_of(command: str) -> Any:
    (found,) = (word for word in shlex.split(command) if word.startswith("-p="))
    return json.loads(found[3:])


def test_a_patch_of_a_template_finds_containers_by_name_and_adds_lists_that_are_missing() -> None:
    (command,) = commands(pod_patch(LESS, TOLERATE), owner="Deployment")
    assert shlex.split(command)[:6] == ["kubectl", "-n", "ns", "patch", "deployment", "web"]
    assert patch_of(command) == [
        {"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/cpu", "value": "4"},
        {"op": "add", "path": "/spec/template/spec/tolerations", "value": [TOLERATE.value]},
    ]


def test_pods_of_a_stateful_set_are_deleted_so_that_they_get_the_new_template() -> None:
    patch, delete = commands(pod_patch(TOLERATE), owner="StatefulSet")
    assert "patch statefulset web" in patch and delete == "kubectl -n ns delete pod web"


def test_a_job_is_created_anew_without_what_its_uid_gave_it() -> None:
    (command,) = commands(pod_patch(LESS), owner="Job")
    get, patch, replace = command.split(" | ")
    assert get == "kubectl -n ns get job web -o json" and replace == "kubectl replace --force -f -"
    removed = [each["path"] for each in patch_of(patch) if each["op"] == "remove"]
    labels = "/spec/template/metadata/labels"
    assert removed == ["/spec/selector", f"{labels}/batch.kubernetes.io~1controller-uid", f"{labels}/controller-uid"]


def test_a_bare_pod_is_created_anew_without_the_priority_that_admission_computes() -> None:
    higher = Operation("replace", "/spec/priority", 1000)
    (command,) = commands(pod_patch(LESS, higher, Operation("add", "/spec/priorityClassName", "high")))
    assert command.startswith("kubectl -n ns get pod web -o json | kubectl patch --local -f - --type=json -p='[")
    assert [(each["op"], each["path"]) for each in patch_of(command)] == [
        ("remove", "/spec/priority"),
        ("remove", "/spec/preemptionPolicy"),
        ("replace", LESS.path),
        ("add", "/spec/priorityClassName"),
    ]


def test_tolerations_are_added_to_the_pod_itself_and_gates_removed() -> None:
    assert [each.split(" --type")[0] for each in commands(pod_patch(TOLERATE))] == ["kubectl -n ns patch pod web"]
    gate = Operation("remove", "/spec/schedulingGates/0")
    first, second = commands(pod_patch(gate, TOLERATE), owner="Deployment")
    assert "patch pod web" in first and "patch deployment web" in second


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            PatchObject("Node", "n 1", (Operation("remove", "/spec/taints/0"),)),
            "kubectl taint nodes 'n 1' 'a b:NoSchedule-'",
            id="a taint",
        ),
        pytest.param(
            PatchObject("Node", "n 1", (Operation("replace", "/spec/taints", []),)),
            "kubectl taint nodes 'n 1' 'a b:NoSchedule-'",
            id="the taints without one",
        ),
        pytest.param(
            PatchObject("Node", "n 1", (Operation("add", "/metadata/labels/disk", "ssd"),)),
            "kubectl label node 'n 1' disk=ssd --overwrite",
            id="another value of a label",
        ),
        pytest.param(
            PatchObject("Node", "n 1", (Operation("add", "/metadata/labels/example.com~1a", "b"),)),
            "kubectl label node 'n 1' example.com/a=b",
            id="a new label",
        ),
        pytest.param(
            PatchObject("Node", "n 1", (Operation("add", "/metadata/labels", {"gpu": "true"}),)),
            "kubectl label node 'n 1' gpu=true",
            id="a label on a node that seems to have none",
        ),
        pytest.param(
            PatchObject("Node", "m", (Operation("replace", "/spec/unschedulable", False),)),
            "kubectl uncordon m",
            id="a cordon",
        ),
        pytest.param(
            PatchObject("Node", "m", (Operation("remove", "/spec/unschedulable"),)),
            "kubectl uncordon m",
            id="removed",
        ),
        pytest.param(DeleteObject("Pod", "x/y"), "kubectl -n x delete pod y", id="a pod"),
        pytest.param(
            PatchObject("Deployment", "x/y", (Operation("replace", "/spec/replicas", 2),)),
            "kubectl -n x scale deployment y --replicas=2",
            id="replicas",
        ),
        pytest.param(
            PatchObject("Job", "x/y", (Operation("replace", "/spec/parallelism", 2),)),
            """kubectl -n x patch job y --type=json -p='[{"op":"replace","path":"/spec/parallelism","value":2}]'""",
            id="parallelism",
        ),
        pytest.param(
            PatchObject("PodDisruptionBudget", "x/y", (Operation("add", "/spec/minAvailable", 2),)),
            """kubectl -n x patch pdb y --type=json -p='[{"op":"add","path":"/spec/minAvailable","value":2}]'""",
            id="a budget",
        ),
        pytest.param(
            PatchObject("Pod", "ns/web", (Operation("add", "/metadata/annotations", {COST: "-1"}),)),
            f"kubectl -n ns annotate --overwrite pod web {COST}=-1",
            id="a deletion cost is no change of the template",
        ),
        pytest.param(
            PatchObject("WorkloadPolicy", "x/y", (Operation("remove", "/spec/a"),)),
            'kubectl -n x patch workloadpolicies.kosmos.io y --type=json -p=\'[{"op":"remove","path":"/spec/a"}]\'',
            id="a custom resource",
        ),
    ],
)
def test_changes_of_other_objects(change: ObjectChange, expected: str) -> None:
    assert commands(change) == (expected,)


def test_an_object_is_created_from_a_text_that_the_shell_leaves_alone() -> None:
    (command,) = commands(CreateObject({"kind": "PriorityClass", "metadata": {"name": "$(high)"}, "value": 7}))
    assert command == ("kubectl create -f - <<'EOF'\nkind: PriorityClass\nmetadata:\n  name: $(high)\nvalue: 7\nEOF")


def test_nodes_are_added_by_other_means() -> None:
    assert commands(AddNodes(2, "n", {})) == ()


def test_the_context_is_named_in_each_kubectl_of_a_pipe() -> None:
    (command,) = commands(pod_patch(LESS), flags=("--context", "my own"))
    assert command.count("kubectl --context 'my own'") == 3


def test_members_of_one_owner_have_one_command() -> None:
    others = [PatchObject("Pod", f"ns/web-{number}", (TOLERATE,)) for number in range(3)]
    assert len(commands(*others, owner="Deployment")) == 1
    assert len(commands(*others)) == 3


def test_texts_are_quoted_for_the_shell() -> None:
    quoted = Operation("add", "/spec/nodeSelector", {"it's": "$HOME"})
    (command,) = commands(pod_patch(quoted), owner="Deployment")
    assert patch_of(command)[0]["value"] == {"it's": "$HOME"}


def test_a_part_that_only_the_pod_has_cannot_be_patched_in_the_template() -> None:
    injected = Operation("replace", "/spec/containers/0/resources/requests/cpu", "1")
    assert for_template([injected], POD, DEPLOYMENT) is None
    assert commands(pod_patch(injected), owner="Deployment") == ()


def test_several_parts_below_one_that_is_missing_are_added_together() -> None:
    operations = [Operation("add", "/spec/nodeSelector/a", "1"), Operation("add", "/spec/nodeSelector/b", "2")]
    assert completed(operations, {"spec": {}}) == (Operation("add", "/spec/nodeSelector", {"a": "1", "b": "2"}),)
    assert completed(operations, {"spec": {"nodeSelector": {"a": "0"}}}) == tuple(operations)


def pod_like(*tolerations: Mapping[str, Any], owner: str = "ReplicaSet") -> dict[str, Any]:
    spec = {**POD["spec"], "tolerations": list(tolerations)}
    return {"metadata": {"ownerReferences": [{"kind": owner, "name": "web"}]}, "spec": spec}


LIST = "/spec/template/spec/tolerations"
MISSING = (Operation("test", LIST), Operation("add", LIST, [TOLERATE.value]))
APPENDED = (Operation("add", f"{LIST}/-", TOLERATE.value),)
PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(pod_like(), MISSING, id="no toleration"),
        pytest.param(pod_like({**NOT_READY, "tolerationSeconds": 300}), MISSING, id="that of admission"),
        pytest.param(pod_like({**NOT_READY, "tolerationSeconds": 60}), APPENDED, id="one with a time of its own"),
        pytest.param(pod_like({"key": "gpu", "operator": "Exists"}), APPENDED, id="one of its own"),
        pytest.param(pod_like(NOT_READY, PRESSURE, owner="DaemonSet"), MISSING, id="those of the DaemonSet controller"),
        pytest.param(pod_like(PRESSURE), APPENDED, id="the same of another owner"),
    ],
)
def test_without_the_document_of_the_owner_nothing_of_its_template_is_lost(
    pod: dict[str, Any], expected: tuple[Operation, ...]
) -> None:
    assert for_template([TOLERATE], pod, None) == expected


def test_without_the_document_of_the_owner_containers_are_tested_by_name() -> None:
    path = "/spec/template/spec/containers/1"
    assert for_template([LESS], POD, None) == (
        Operation("test", f"{path}/name", "app"),
        Operation("replace", f"{path}/resources/requests/cpu", "4"),
    )


def test_a_test_for_nothing_is_null_in_the_patch() -> None:
    gone = DOCUMENTS.pop(("Deployment", "ns/web"))
    try:
        (command,) = commands(pod_patch(TOLERATE), owner="Deployment")
    finally:
        DOCUMENTS["Deployment", "ns/web"] = gone
    assert patch_of(command)[0] == {"op": "test", "path": LIST, "value": None}


def noted(*changes: ObjectChange, origin: PodOrigin, count: PodCount | None = None) -> tuple[str, ...]:
    found = RemedyCommands(
        lambda kind, key: DOCUMENTS.get((kind, key)), lambda _: origin, pods_of=lambda _: count or PodCount()
    )
    return found.notes(changes)


@pytest.mark.parametrize(
    ("kind", "count", "expected"),
    [
        pytest.param("Rollout", PodCount(5, 2), ("its owner is a Rollout: change its template",), id="unknown kind"),
        pytest.param("Deployment", PodCount(5, 2), ("rolls out all 5 pods, 2 of them running",), id="Deployment"),
        pytest.param("StatefulSet", PodCount(1, 1), ("rolls out all 1 pod, 1 of them running",), id="StatefulSet"),
        pytest.param("Deployment", PodCount(5, 0), (), id="none runs"),
        pytest.param("ReplicaSet", PodCount(5, 2), (), id="a ReplicaSet leaves its pods alone"),
    ],
)
def test_what_else_a_patch_of_a_template_means(kind: str, count: PodCount, expected: tuple[str, ...]) -> None:
    assert noted(pod_patch(TOLERATE), origin=PodOrigin(Owner(kind, "ns/web")), count=count) == expected


def test_removing_a_gate_rolls_nothing_out() -> None:
    gate = Operation("remove", "/spec/schedulingGates/0")
    assert noted(pod_patch(gate), origin=PodOrigin(Owner("Deployment", "ns/web")), count=PodCount(5, 2)) == ()


def of_file(manifest: Manifest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = RemedyCommands(lambda kind, key: DOCUMENTS.get((kind, key)), lambda _: PodOrigin(None, manifest))
    return found.of([pod_patch(TOLERATE)]), found.notes([pod_patch(TOLERATE)])


def test_of_a_file_with_several_documents_the_applied_object_is_patched() -> None:
    typed, notes = of_file(Manifest("a b.yaml", "Deployment", "ns/web", DEPLOYMENT, alone=False))
    assert len(typed) == 2 and typed[0].endswith("apply -f 'a b.yaml'") and notes == ()
    assert typed[1].startswith("kubectl -n ns patch deployment web --type=json")
    typed, notes = of_file(Manifest("-", "Deployment", "ns/web", DEPLOYMENT))
    assert [each.split(" --type")[0] for each in typed] == ["kubectl -n ns patch deployment web"]
    assert notes == ("apply the manifest before deployment web is patched",)


def test_what_cannot_be_patched_after_it_is_applied_is_said_in_a_sentence() -> None:
    typed, notes = of_file(Manifest("all.yaml", "Pod", "ns/web", POD, alone=False))
    assert typed == () and notes[0].startswith('change pod web in all.yaml by this JSON patch: [{"op": "add"')


def test_the_number_of_replicas_that_was_asked_about_is_in_the_patch() -> None:
    (command,), _ = of_file(Manifest("web.yaml", "Deployment", "ns/web", DEPLOYMENT, replicas=7))
    assert patch_of(command.split(" -o yaml")[0])[-1] == {"op": "add", "path": "/spec/replicas", "value": 7}
