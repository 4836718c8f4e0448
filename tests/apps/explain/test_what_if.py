"""`stowplan explain -f`: pods that do not exist yet, as the API server would admit them, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.workloads import PriorityClass
from stowplan.testing.builders import a_node, a_pod
from tests.apps.explain import schema
from tests.apps.explain.test_explain import GANGS, NODES, dump
from tests.diagnosis.test_remedies import an_object

CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]


def manifest(kind: str, name: str = "web", version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": CONTAINERS}}
    found = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": found}


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": CONTAINERS, **spec}}


def asked(folder: Path, *documents: Any, more: tuple[str, ...] = (), cluster: Any = NODES) -> tuple[int, Any]:
    file = folder / "manifest.yaml"
    file.write_text("\n---\n".join(yaml.safe_dump(each) for each in documents), encoding="utf-8")
    (folder / "cluster").mkdir(exist_ok=True)
    there = dump(folder / "cluster", *cluster)
    answer = CliRunner().invoke(main, ["explain", "-f", str(file), "-o", "json", "--from", there, *more])
    assert answer.exit_code in (0, 1), answer.output
    found = json.loads(answer.stdout)
    schema.check(found)
    return answer.exit_code, found


def nodes(found: Any) -> list[str | None]:
    return [each["node"] for each in found["items"]]


def refused(folder: Path, text: str, *more: str) -> Result:
    file = folder / "manifest.yaml"
    file.write_text(text, encoding="utf-8")
    (folder / "cluster").mkdir(exist_ok=True)
    answer = CliRunner().invoke(main, ["explain", "-f", str(file), "--from", dump(folder / "cluster", *NODES), *more])
    assert answer.exit_code == 2 and "Traceback" not in answer.output
    return answer


@pytest.mark.parametrize(
    ("document", "pods"),
    [
        pytest.param(pod(), 1, id="Pod"),
        pytest.param(manifest("Deployment", replicas=3), 3, id="Deployment"),
        pytest.param(manifest("ReplicaSet", replicas=2), 2, id="ReplicaSet"),
        pytest.param(manifest("StatefulSet", replicas=3, serviceName="web"), 3, id="StatefulSet, in any order"),
        pytest.param(manifest("DaemonSet"), 2, id="DaemonSet: not on the node with a taint"),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "job"},
                "spec": {
                    "parallelism": 2,
                    "completions": 5,
                    "template": {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}},
                },
            },
            2,
            id="Job: as many as run at once",
        ),
        pytest.param({"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("b")]}, 2, id="List"),
    ],
)
def test_each_kind_is_explained_by_its_template(tmp_path: Path, document: Any, pods: int) -> None:
    code, found = asked(tmp_path, document)
    assert code == 0 and len(nodes(found)) == pods and None not in nodes(found)


def test_what_a_pod_takes_is_counted_for_the_next(tmp_path: Path) -> None:
    code, found = asked(tmp_path, manifest("Deployment", replicas=2), pod("last"), more=("--replicas", "5"))
    assert code == 1, "a has 4 cpus and b has 2; two kinds want 5 each"
    assert nodes(found).count("a") == 4 and nodes(found).count("b") == 2 and nodes(found).count(None) == 4
    lost = [each for each in found["items"] if each["node"] is None]
    assert lost[0]["causes"][0]["causes"][0]["code"] == "insufficient"


def test_the_namespace_is_that_of_the_manifest_or_of_the_command_line(tmp_path: Path) -> None:
    elsewhere = pod("own")
    elsewhere["metadata"]["namespace"] = "own"
    _, found = asked(tmp_path, pod(), elsewhere, more=("-n", "given"))
    assert [each["pod"] for each in found["items"]] == ["given/web", "own/own"]
    assert asked(tmp_path, pod())[1]["items"][0]["pod"] == "default/web"


def test_defaults_are_those_of_the_server(tmp_path: Path) -> None:
    """Requests follow limits; the default class gives the priority; a LimitRange gives limits."""
    only_limits = pod("limited", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "5"}}}])
    code, found = asked(tmp_path, only_limits)
    assert code == 1 and found["items"][0]["causes"][0]["causes"][0]["code"] == "too-small"
    limits = {"limits": [{"type": "Container", "default": {"cpu": "7"}}]}
    ranges = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": limits,
    }
    bare = pod("bare", containers=[{"name": "c", "image": "i"}])
    assert asked(tmp_path, bare)[0] == 0 and asked(tmp_path, ranges, bare)[0] == 1
    default = PriorityClass(ObjectMeta("ordinary"), value=10, global_default=True)
    busy = a_pod("busy", cpu="4", node="a", priority=5)
    code, found = asked(tmp_path, pod(), cluster=[NODES[0], busy, default])
    assert code == 1 and found["items"][0]["preemption"]["victims"] == [
        {"pod": "default/busy", "priority": 5, "node": "a"}
    ]


def test_victims_are_gone_for_the_next_pod(tmp_path: Path) -> None:
    high = PriorityClass(ObjectMeta("high"), value=1000)
    busy = [a_pod("low", cpu="4", node="a")]
    first, second = pod("first", priorityClassName="high"), pod("second")
    code, found = asked(tmp_path, first, second, cluster=[NODES[0], *busy, high])
    assert code == 1
    assert found["items"][0]["preemption"]["nodes"] == {"default/first": "a"}
    assert nodes(found) == [None, "a"], "the room that the eviction frees is more than the first pod takes"


def test_a_missing_priority_class_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    classes = [PriorityClass(ObjectMeta("high"), value=1000)]
    code, found = asked(tmp_path, pod(priorityClassName="hihg"), cluster=[*NODES, *classes])
    (item,) = found["items"]
    assert code == 1 and item["podCauses"][0]["code"] == "priority-class" and item["node"] is None
    assert [each["code"] for each in item["remedies"]] == ["priority-class", "create-priority-class"]
    assert item["remedies"][0]["changes"][0]["patch"][0]["value"] == "high"
    assert item["remedies"][1]["commands"][0].startswith("kubectl create -f - <<'EOF'\napiVersion: scheduling")


def test_a_missing_priority_class_is_created_beside_what_else_helps(tmp_path: Path) -> None:
    code, found = asked(tmp_path, pod(priorityClassName="high"), cluster=[NODES[2]])
    (item,) = found["items"]
    best = item["remedies"][0]
    assert code == 1 and best["code"] == "tolerate+create-priority-class"
    assert {each["code"] for each in item["remedies"]} >= {"remove-taint+create-priority-class"}
    assert best["commands"][0].startswith("kubectl create -f - <<'EOF'\napiVersion: scheduling")
    assert len(best["commands"]) == 2 and best["node"] == NODES[2].name


def test_a_claim_that_the_file_makes_is_patched_after_it(tmp_path: Path) -> None:
    mode = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    fast = an_object("StorageClass", metadata={"name": "fast"}, **mode)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": claim}
    _, found = asked(
        tmp_path, manifest("StatefulSet", serviceName="web", volumeClaimTemplates=[template]), cluster=[*NODES, fast]
    )
    best = found["items"][0]["remedies"][0]
    assert best["code"] == "name-class"
    patch = '[{"op":"add","path":"/spec/storageClassName","value":"fast"}]'
    assert best["commands"] == [f"kubectl -n default patch pvc data-web-0 --type=json -p='{patch}'"]
    file = tmp_path / "manifest.yaml"
    assert best["also"] == [f"apply {file} before the claim default/data-web-0 is patched: it makes it"]


def test_a_workload_whose_controller_cannot_create_its_pods_is_no_all_clear(tmp_path: Path) -> None:
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    document = manifest("StatefulSet", serviceName="web", volumeClaimTemplates=[template])
    told = " ".join(refused(tmp_path, yaml.safe_dump(document)).stderr.split())
    assert "manifest.yaml: StatefulSet web" in told and "spec.resources[storage]: Required value" in told


def test_commands_change_the_file(tmp_path: Path) -> None:
    _, found = asked(tmp_path, manifest("Deployment"), cluster=[NODES[2]])
    tolerate = next(each for each in found["items"][0]["remedies"] if each["code"] == "tolerate")
    assert tolerate["commands"][0].startswith(f"kubectl patch --local -f {tmp_path}/manifest.yaml --type=json")
    assert tolerate["commands"][0].endswith("-o yaml | kubectl -n default apply -f -")
    assert "/spec/template/spec/tolerations" in tolerate["commands"][0]


def test_a_group_is_explained_as_a_whole(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(GANGS, encoding="utf-8")
    prefix = "pod-group.scheduling.kubenexus.io"
    members = [pod(name) for name in ("x", "y", "z")]
    for each in members:
        each["metadata"]["labels"] = {f"{prefix}/name": "g", f"{prefix}/min-available": "3"}
    code, found = asked(tmp_path, *members, more=("--config", str(config)))
    assert code == 0 and found["items"][0]["podGroup"]["whole"]
    code, found = asked(tmp_path, *members, cluster=[NODES[1]], more=("--config", str(config)))
    assert code == 1 and nodes(found) == [None, None, None], "two of three fit, and that is not enough"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("kind: [", "manifest.yaml: cannot be read: ", id="no YAML"),
        pytest.param("hello", "manifest.yaml: not a Kubernetes object; every document needs", id="no object"),
        pytest.param(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}",
            "manifest.yaml: found ConfigMap; kinds that",
            id="kind",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: []}}",
            'manifest.yaml: Pod x: Pod "x" is invalid: spec.containers: Required value',
            id="no container",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: 5}}",
            "manifest.yaml: Pod x: Pod in version",
            id="a wrong type",
        ),
        pytest.param("{apiVersion: v1, kind: Pod}", "manifest.yaml: Pod: found no metadata", id="no metadata"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_located(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(tmp_path, text).output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["-f", "missing.yaml"], "missing.yaml: cannot be read: no such file", id="no file"),
        pytest.param(["-f", "x.yaml", "web"], "found -f and pods of the cluster", id="a file and a pod"),
        pytest.param(["--replicas", "3"], "found --replicas without -f", id="replicas of what"),
        pytest.param(["web", "-l", "a=b"], "found both POD and -l", id="a name and labels"),
    ],
)
def test_flags_that_contradict_each_other(tmp_path: Path, arguments: list[str], says: str) -> None:
    answer = CliRunner().invoke(main, ["explain", *arguments, "--from", dump(tmp_path, a_node("a"))])
    assert answer.exit_code == 2 and says in answer.output


def test_a_manifest_from_standard_input(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["explain", "-f", "-", "--from", dump(tmp_path, *NODES)], input=json.dumps(pod()))
    assert answer.exit_code == 0 and answer.output.startswith("The pod would be scheduled.")


def test_a_placement(tmp_path: Path) -> None:
    fleet = "cluster.open-cluster-management.io"
    bound = {"apiVersion": f"{fleet}/v1beta2", "kind": "ManagedClusterSetBinding"}
    hub = [
        {
            "apiVersion": f"{fleet}/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": "c1", "labels": {f"{fleet}/clusterset": "s"}},
        },
        {"apiVersion": f"{fleet}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "s"}},
        {**bound, "metadata": {"name": "s", "namespace": "default"}, "spec": {"clusterSet": "s"}},
    ]
    (tmp_path / "hub.yaml").write_text("\n---\n".join(map(yaml.safe_dump, hub)), encoding="utf-8")
    wanted = {"apiVersion": f"{fleet}/v1beta1", "kind": "Placement", "metadata": {"name": "p"}, "spec": {}}
    file = tmp_path / "placement.json"
    file.write_text(json.dumps(wanted), encoding="utf-8")
    answer = CliRunner().invoke(main, ["explain", "-f", str(file), "--from", str(tmp_path / "hub.yaml")])
    assert answer.exit_code == 0 and answer.output.startswith("default/p gets 1 of 1 clusters")
    wanted["spec"] = {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prd"}}}}]}
    file.write_text(json.dumps(wanted), encoding="utf-8")
    answer = CliRunner().invoke(main, ["explain", "-f", str(file), "-o", "json", "--from", str(tmp_path / "hub.yaml")])
    found = json.loads(answer.stdout)
    schema.check(found)
    (placement,) = found["placements"]
    assert answer.exit_code == 1 and placement["clusterCauses"][0]["clusters"] == ["c1"]
    assert placement["remedies"] and all(each["clusters"] == ["c1"] for each in placement["remedies"])
    answer = CliRunner().invoke(main, ["explain", "-f", str(file), "--from", str(tmp_path / "hub.yaml")])
    assert ("c1: " in answer.output and "kubectl label" in answer.output) or "kubectl patch" in answer.output


def test_a_limit_range_without_a_namespace_is_in_that_of_the_command_line(tmp_path: Path) -> None:
    limits = {"limits": [{"type": "Container", "default": {"cpu": "7"}}]}
    ranges = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": limits}
    bare = pod("bare", containers=[{"name": "c", "image": "i"}])
    assert asked(tmp_path, bare, more=("-n", "team"))[0] == 0
    assert asked(tmp_path, ranges, bare, more=("-n", "team"))[0] == 1


def test_a_namespace_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(namespace), encoding="utf-8")
    there = ("--from", str(tmp_path / "more.yaml"))
    answer = refused(tmp_path, yaml.safe_dump(pod()), "-n", "taem", *there)
    assert 'namespaces "taem" not found; did you mean team?' in answer.output
    assert asked(tmp_path, pod(), more=("-n", "team", *there))[0] == 0
    assert asked(tmp_path, pod(), more=there)[0] == 0, "default is in every cluster"
    new = {**namespace, "metadata": {"name": "new"}}
    assert asked(tmp_path, new, pod(), more=("-n", "new", *there))[0] == 0, "the manifest creates it"


@pytest.mark.parametrize(
    ("document", "code", "told"),
    [
        pytest.param(
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": "g"},
                "spec": {"minMember": 3},
            },
            1,
            "group default/g: 0 of 3 members exist.",
            id="a group without members",
        ),
        pytest.param(manifest("Deployment", replicas=0), 0, "manifest.yaml makes no pods.", id="no replicas"),
    ],
)
def test_manifests_that_make_no_pods_say_so(tmp_path: Path, document: Any, code: int, told: str) -> None:
    found = asked(tmp_path, document)
    assert (found[0], found[1]["items"]) == (code, [])
    files = ("-f", str(tmp_path / "manifest.yaml"), "--from", dump(tmp_path / "cluster", *NODES))
    answer = CliRunner().invoke(main, ["explain", *files])
    assert answer.exit_code == code and answer.stdout.rstrip().endswith(told)


def test_a_deployment_that_runs_already_is_rolled_out_when_its_file_is_applied(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7f", "uid": "u"}
    runs = [a_pod(f"web-7f-{at}", cpu="1", node="a", labels={"pod-template-hash": "7f"}, owner=owner) for at in "xy"]
    _, found = asked(tmp_path, manifest("Deployment", replicas=9), cluster=[*NODES, *runs])
    lost = next(each for each in found["items"] if each["node"] is None)
    lowered = next(each for each in lost["remedies"] if each["code"] == "lower-request")
    assert "rolls out the 2 pods that it has already" in lowered["also"]
    _, fresh = asked(tmp_path, manifest("Deployment", "other", replicas=9), cluster=[*NODES, *runs])
    lost = next(each for each in fresh["items"] if each["node"] is None)
    assert not [also for each in lost["remedies"] for also in each["also"] if "rolls out" in also]
