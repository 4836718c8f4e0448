"""`stowplan capacity`: what it counts, what stops it, how many nodes it asks for, its flags and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.capacity.command import Counting
from stowplan.apps.cli import main

Document = dict[str, Any]


def node(name: str, cpu: str = "4", **more: Any) -> Document:
    status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status, **more}


def spec(cpu: str = "1", **more: Any) -> Document:
    return {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}], **more}


def pod(name: str = "web", cpu: str = "1", **more: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec(cpu, **more)}


def workload(kind: str, replicas: int | None, cpu: str = "1", **more: Any) -> Document:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec(cpu)}
    found = {"selector": {"matchLabels": labels}, "template": template, **more}
    metadata = {"name": "web"}
    version = "apps/v1"
    if kind == "Job":
        version = "batch/v1"
        found = {"template": {"spec": spec(cpu, restartPolicy="Never")}, **more}
    elif replicas is not None:
        found["replicas"] = replicas
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": found}


QUOTA = {
    "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"pods": "2"}},
}  # fmt: skip
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
             "resources": {"requests": {"storage": "1Gi"}}},
}  # fmt: skip
LOCAL = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
}  # fmt: skip


def volume(name: str) -> Document:
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "local",
                 "hostPath": {"path": "/data"}},
        "status": {"phase": "Available"},
    }  # fmt: skip


class Asked:
    """The command in a folder with a cluster and a manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster(node("a"), node("b", "7"))

    def write(self, name: str, *documents: Document) -> str:
        (self.folder / name).write_text("\n---\n".join(map(json.dumps, documents)))
        return name

    def cluster(self, *documents: Document) -> None:
        self.write("cluster.yaml", *documents)

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["capacity", "--from", "cluster.yaml", *arguments], env={"COLUMNS": "80"})

    def about(self, *documents: Document, arguments: tuple[str, ...] = ()) -> Any:
        done = self("-f", self.write("asked.yaml", *documents), "-o", "json", *arguments)
        assert done.exit_code in (0, 1), done.output
        return json.loads(done.stdout)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.chdir(tmp_path)
    return Asked(tmp_path)


@pytest.mark.parametrize(
    ("document", "fits", "wanted"),
    [
        pytest.param(pod(cpu="2"), 5, None, id="a pod"),
        pytest.param(workload("Deployment", 3, "2"), 5, 3, id="a Deployment, with its replicas"),
        pytest.param(workload("Deployment", None, "2"), 5, 1, id="one that does not say how many"),
        pytest.param(workload("StatefulSet", 2, "3", serviceName="web"), 3, 2, id="a StatefulSet"),
        pytest.param(workload("ReplicaSet", 9, "2"), 5, 9, id="a ReplicaSet"),
        pytest.param(workload("Job", None, "2", parallelism=4), 5, 4, id="a Job, with its parallelism"),
    ],
)
def test_it_counts_the_pods_of(document: Document, fits: int, wanted: int | None, asked: Asked) -> None:
    told = asked.about(document)
    assert (told["fits"], told["wanted"], told["stop"]["reason"]) == (fits, wanted, "no-node")
    assert sum(told["byNode"].values()) == fits and list(told["byNode"].values()) == sorted(
        told["byNode"].values(), reverse=True
    )
    assert [cause["code"] for group in told["stop"]["causes"] for cause in group["causes"]] == ["insufficient"]


def test_a_claim_of_each_pod_takes_a_volume(asked: Asked) -> None:
    asked.cluster(node("a"), LOCAL, volume("one"), volume("two"))
    mount = {"name": "data", "mountPath": "/data"}
    stateful = workload("StatefulSet", 3, "1", serviceName="web", volumeClaimTemplates=[CLAIM])
    stateful["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    assert asked.about(stateful)["fits"] == 2


def test_pods_of_an_ephemeral_volume_take_volumes_of_its_class(asked: Asked) -> None:
    asked.cluster(node("a"), LOCAL, volume("one"))
    ephemeral = {"volumeClaimTemplate": {"spec": CLAIM["spec"]}}
    told = asked.about(pod(volumes=[{"name": "scratch", "ephemeral": ephemeral}]))
    assert told["fits"] == 1


def test_a_quota_stops_the_count(asked: Asked) -> None:
    asked.cluster(node("a"), QUOTA)
    told = asked.about(pod())
    assert (told["fits"], told["stop"]["reason"]) == (2, "quota")
    done = asked("-f", "asked.yaml")
    assert "The API server refuses the next one: quota few allows 2 of pods" in done.stdout


def test_a_quota_of_the_manifest_counts_too(asked: Asked) -> None:
    assert asked.about(QUOTA, pod())["fits"] == 2


def test_nobody_is_evicted(asked: Asked) -> None:
    existing = pod("low", "3") | {"metadata": {"name": "low", "namespace": "default"}}
    existing["spec"] = {**existing["spec"], "nodeName": "a", "priority": 0}
    asked.cluster(node("a"), existing)
    assert asked.about(pod(priorityClassName="system-cluster-critical"))["fits"] == 1


@pytest.mark.parametrize(
    ("arguments", "fits", "reason", "code"),
    [
        pytest.param(("--max", "3"), 3, "max", 0, id="--max ends the count"),
        pytest.param(("--max-limit", "3"), 3, "max", 0, id="as cluster-capacity calls it"),
        pytest.param(("--max", "0"), 11, "no-node", 0, id="0 is no end"),
        pytest.param(("--replicas", "4"), 4, "replicas", 0, id="as many as are needed fit"),
        pytest.param(("--replicas", "40"), 11, "no-node", 1, id="fewer than are needed fit"),
        pytest.param(("--exclude-nodes", "b"), 4, "no-node", 0, id="a node is left out"),
        pytest.param(("--exclude-nodes", "a,b"), 0, "no-node", 1, id="all are"),
    ],
)
def test_a_flag(arguments: tuple[str, ...], fits: int, reason: str, code: int, asked: Asked) -> None:
    done = asked("--podspec", asked.write("pod.json", pod()), "-o", "json", *arguments)
    told = json.loads(done.stdout)
    assert (told["fits"], told["stop"]["reason"], done.exit_code) == (fits, reason, code)


def test_a_configuration_is_used(asked: Asked) -> None:
    most = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": most}}]}],
    }  # fmt: skip
    file = asked.write("packed.yaml", configuration)
    assert asked.about(pod(), arguments=("--replicas", "4"))["byNode"] == {"a": 1, "b": 3}
    assert asked.about(pod(), arguments=("--replicas", "4", "--default-config", file))["byNode"] == {"a": 4}


def test_the_fewest_nodes_of_each_template(asked: Asked) -> None:
    file = asked.write("nodes.yaml", node("large", "16"), node("small", "1"))
    told = asked.about(workload("Deployment", 50, "2"), arguments=("--node-template", file))
    found = {each["template"]: (each["nodes"], each["fits"]) for each in told["templates"]}
    assert found == {"large": (6, 50), "small": (None, 5)}  # 5 fit already, and 8 on each large node
    small = next(each for each in told["templates"] if each["template"] == "small")
    codes = {cause["code"] for group in small["causes"] for cause in group["causes"]}
    assert "too-small" in codes or "node-too-small" in codes


def daemon_set(name: str, cpu: str, **more: Any) -> Document:
    found = workload("DaemonSet", None, cpu)
    found["metadata"] = {"name": name, "namespace": "kube-system"}
    found["spec"]["template"]["spec"] |= more
    return found


def test_pods_of_daemon_sets_take_room_on_the_nodes_that_are_added(asked: Asked) -> None:
    asked.cluster(
        node("a"), node("b", "7"), daemon_set("agent", "1"), daemon_set("huge", "9"),
        daemon_set("elsewhere", "1", nodeSelector={"pool": "blue"}),
    )  # fmt: skip
    file = asked.write("nodes.yaml", node("large", "4"))
    (large,) = asked.about(workload("Deployment", 50, "2"), arguments=("--node-template", file))["templates"]
    assert large["daemonSets"] == ["kube-system/agent"]  # one does not fit, and one is for other nodes
    assert (large["nodes"], large["fits"]) == (45, 50), "5 fit already, and one on each node, not two"
    done = asked("-f", "asked.yaml", "--node-template", file)
    assert "each has a pod of DaemonSet kube-system/agent, too" in done.stdout


def test_a_cluster_that_does_not_exist_yet(asked: Asked) -> None:
    asked.cluster({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    file = asked.write("nodes.yaml", node("large", "4"))
    told = asked.about(workload("Deployment", 10, "2"), arguments=("--node-template", file))
    assert (told["fits"], told["templates"][0]["nodes"]) == (0, 5)


def test_no_node_is_needed_where_all_fit(asked: Asked) -> None:
    file = asked.write("nodes.yaml", node("large", "16"))
    asked.write("pod.yaml", pod())
    done = asked("-f", "pod.yaml", "--replicas", "2", "--node-template", file)
    assert done.exit_code == 0
    assert "With nodes like large: no node is needed, all 2 pods fit as it is." in done.stdout


def test_waiting_pods_are_named_and_not_counted(asked: Asked) -> None:
    asked.cluster(node("a"), pod("waits", "3"))
    done = asked("-f", asked.write("pod.yaml", pod()))
    assert done.stdout.startswith("4 more pods like pod default/web fit.")
    assert done.stderr == "1 pod of the cluster waits for a node, and may take room before these.\n"


def test_many_nodes_are_named_if_asked(asked: Asked) -> None:
    asked.cluster(*(node(f"n-{number}") for number in range(12)))
    file = asked.write("pod.yaml", pod())
    assert "2 more, --verbose names them" in asked("-f", file).stdout
    done = asked("-f", file, "--verbose")
    assert "more, --verbose" not in done.stdout and all(f" n-{number} " in done.stdout for number in range(12))


@pytest.mark.parametrize(
    ("documents", "arguments", "said"),
    [
        pytest.param([pod()], ("--exclude-nodes", "aa"), "--exclude-nodes: there is no node aa; did you mean a?",
                     id="no such node"),
        pytest.param([pod(schedulerName="defalt-scheduler")], (),
                     'pod.yaml: Pod default/web: no profile has the schedulerName \'defalt-scheduler\'; did you mean '
                     '"default-scheduler"?', id="no such scheduler"),
        pytest.param([pod(priorityClassName="high")], (), "there is no PriorityClass high: the API server refuses",
                     id="no such priority class"),
        pytest.param([workload("DaemonSet", None)], (), "a DaemonSet has one pod for each node", id="a DaemonSet"),
        pytest.param([pod(), pod("other")], (),
                     "found Pod default/web, Pod default/other, expected one pod or workload", id="two pods"),
        pytest.param([pod() | {"kind": "Pood"}], (), "did you mean Pod?", id="a misspelt kind"),
        pytest.param([node("c")], (), "pod.yaml: found Node; kinds that can be counted: Pod, Deployment", id="a Node"),
        pytest.param([pod()], ("--node-template", "pod.yaml"), "found no Node; --node-template needs nodes",
                     id="a template that is none"),
        pytest.param([pod()], ("--max", "2", "--replicas", "3"), "--max: found 2, and 3 pods are wanted",
                     id="it would end before that is known"),
        pytest.param([workload("Deployment", 3)], ("--max", "2"), "write --replicas 2 to ask about so many",
                     id="so it would with those of the manifest"),
        pytest.param([pod(cpu="-1")], (), "must be greater than or equal to 0", id="a negative request"),
        pytest.param([pod()], ("-n", "prod"), "there is no namespace prod", id="no such namespace"),
    ],
)  # fmt: skip
def test_what_cannot_be_used(documents: list[Document], arguments: tuple[str, ...], said: str, asked: Asked) -> None:
    asked.cluster(node("a"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    done = asked("-f", asked.write("pod.yaml", *documents), *arguments)
    assert (done.exit_code == 2 and done.exception is None) or isinstance(done.exception, SystemExit)
    assert said in done.stderr and "Traceback" not in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "-f: found no manifest", id="no manifest"),
        pytest.param(("-f", "none.yaml"), "none.yaml: cannot be read: no such file", id="no such file"),
        pytest.param(("-f", "cluster.yaml", "--max", "-1"), "-1 is not in the range x>=0", id="a negative number"),
        pytest.param(("-f", "cluster.yaml", "--replicas", "0"), "0 is not in the range x>=1", id="no replicas"),
    ],
)
def test_flags_that_cannot_be_used(arguments: tuple[str, ...], said: str, asked: Asked) -> None:
    done = asked(*arguments)
    assert done.exit_code == 2 and said in done.stderr


def test_a_broken_manifest_is_told_with_its_line(asked: Asked) -> None:
    (asked.folder / "pod.yaml").write_text("kind: Pod\nmetadata: {name: web\n")
    done = asked("-f", "pod.yaml")
    assert done.exit_code == 2 and "pod.yaml: cannot be read: line" in done.stderr


def test_ctrl_c_ends_it_without_a_traceback(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Counting, "answer", interrupted)
    done = asked("-f", asked.write("pod.yaml", pod()))
    assert (done.exit_code, done.stderr) == (130, "stopped\n")
