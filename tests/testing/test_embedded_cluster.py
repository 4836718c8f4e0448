"""`EmbeddedCluster` and the fixture `embedded_cluster`, as an author of policies uses them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.testing import EmbeddedCluster, a_node

ROOT = Path(__file__).parents[2]

POD = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: nginx}]}}"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: budgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Budget, plural: budgets}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Budget
metadata: {name: small}
spec: {pods: 2}
status: {used: 1}
"""
PLUGIN = """
from stowplan.plugin import Nodes, Pod, Reject


class OnlyTheLast:
    def filter(self, pod: Pod, nodes: Nodes):
        yield Reject(nodes.name != "node-2", "node(s) were not the last")


class Broken:
    def filter(self, pod: Pod, nodes: Nodes):
        return 1 / 0
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: {filter: {enabled: [{name: "policy.py:OnlyTheLast"}]}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "policy.py").write_text(PLUGIN)
    file = tmp_path / "policy" / "config.yaml"
    file.write_text(CONFIG)
    return file


def test_a_policy_of_a_file_decides_and_the_pod_runs(config: Path) -> None:
    with EmbeddedCluster() as cluster:
        cluster.start_scheduler(config=config)
        cluster.apply(POD)
        cluster.wait_until(lambda: (cluster.get("Pod", "default/web") or {})["status"]["phase"] == "Running")
        assert cluster.node_of("default/web") == "node-2"
        cluster.wait_until(lambda: cluster.events("web", reason="Scheduled"))
        assert cluster.errors == [] and "Successfully bound" in cluster.log
        assert cluster.kubeconfig.exists()
    assert not cluster.kubeconfig.exists()


def test_objects_of_a_definition_with_their_status() -> None:
    with EmbeddedCluster(nodes=0) as cluster:
        _, made = cluster.apply(DEFINITION)
        assert made["status"] == {"used": 1}
        cluster.apply(
            {"apiVersion": "example.com/v1", "kind": "Budget", "metadata": {"name": "small"}, "spec": {"x": 1}}
        )
        assert cluster.patch("Budget", "small", {"spec": {"y": 2}})["spec"] == {"pods": 2, "x": 1, "y": 2}
        cluster.patch("Budget", "small", {"spec": {"y": None}})
        found = cluster.get("Budget", "default/small")
        assert found is not None and found["spec"] == {"pods": 2, "x": 1}
        cluster.delete("Budget", "default/small")
        cluster.delete("Budget", "default/small")
        assert cluster.get("Budget", "default/small") is None and cluster.objects("Budget") == []


def test_nodes_from_a_manifest(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("{apiVersion: v1, kind: Node, metadata: {name: big}, status: {allocatable: {cpu: 96, pods: 9}}}")
    with EmbeddedCluster(nodes=[file]) as cluster:
        (node,) = cluster.objects("Node")
        assert node["metadata"]["name"] == "big" and node["status"]["allocatable"]["cpu"] == "96"


LARGE = "{apiVersion: v1, kind: Node, metadata: {name: large}, status: {allocatable: {cpu: 8, pods: 9}}}"


def test_nodes_of_all_sorts(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text(LARGE)
    cases: list[tuple[Any, list[str]]] = [
        ({"large.yaml": 2}, ["large-0", "large-1"]),
        ("large.yaml", ["large"]),
        ([a_node("mine", cpu=2, labels={"disk": "ssd"}), Path("large.yaml")], ["large", "mine"]),
    ]
    for nodes, names in cases:
        with EmbeddedCluster(nodes=nodes, beside=tmp_path) as cluster:
            found = {each["metadata"]["name"]: each for each in cluster.objects("Node")}
        assert sorted(found) == names
        assert all(each["status"]["allocatable"]["pods"] for each in found.values())
    assert found["mine"]["metadata"]["labels"]["disk"] == "ssd" and found["mine"]["status"]["allocatable"]["cpu"] == "2"


def test_a_mapping_of_nodes_that_is_no_number_of_copies() -> None:
    with pytest.raises(ConfigError, match="a list of manifests"):
        EmbeddedCluster(nodes={"kind": "Node"}).start()


def test_manifests_and_a_scheduler_with_a_document_as_its_configuration(config: Path) -> None:
    """The plugin is beside the test; the name of a pod in the namespace default is enough."""
    document = yaml.safe_load(CONFIG)
    with EmbeddedCluster(manifests=[POD], scheduler=document, beside=config.parent) as cluster:
        assert cluster.wait_until_scheduled("web") == "node-2"
        short, whole = cluster.get("Pod", "web"), cluster.get("Pod", "default/web")  # it may begin to run in between
        assert short and whole and short["metadata"]["uid"] == whole["metadata"]["uid"]
        cluster.delete("Pod", "web")
        cluster.wait_until(lambda: not cluster.pods())


def test_a_restart_of_the_scheduler() -> None:
    with EmbeddedCluster(nodes=1) as cluster:
        cluster.apply(POD)
        for _ in range(2):
            cluster.start_scheduler()
            cluster.wait_until(lambda: cluster.node_of("default/web"))
            cluster.delete("Pod", "default/web")
            cluster.stop_scheduler()
            cluster.wait_until(lambda: not cluster.pods())
            cluster.apply(POD)
        assert cluster.node_of("default/web") == ""


def test_a_wait_in_vain_shows_the_cluster() -> None:
    with EmbeddedCluster(nodes=0) as cluster:
        cluster.start_scheduler()
        cluster.apply(POD)
        cluster.wait_until(lambda: cluster.events("web", reason="FailedScheduling"))
        with pytest.raises(AssertionError) as raised:
            cluster.wait_until(lambda: cluster.node_of("default/web"), within=0.01)
    for part in ("not so after 0.01 s", "default/web  Pending  no node  no nodes available", "FailedScheduling"):
        assert part in str(raised.value)


def test_errors_of_the_scheduler_fail_the_test_unless_they_are_expected(config: Path) -> None:
    broken = config.with_name("broken.yaml")
    broken.write_text(CONFIG.replace("OnlyTheLast", "Broken"))
    cluster = EmbeddedCluster(nodes=1).start()
    cluster.start_scheduler(config=broken)
    cluster.apply(POD)
    cluster.wait_until(lambda: cluster.errors)
    with pytest.raises(AssertionError, match="division by zero"):
        cluster.stop()
    with EmbeddedCluster(nodes=1) as cluster:
        cluster.start_scheduler(config=str(broken))
        cluster.apply(POD)
        cluster.wait_until(lambda: cluster.errors)
        cluster.allow_errors = True


@pytest.mark.parametrize(
    ("use", "said"),
    [
        pytest.param(lambda it: it.apply("missing.yaml"), "or a file that exists", id="no such file"),
        pytest.param(lambda it: it.apply("a: [b"), "not YAML", id="not YAML"),
        pytest.param(lambda it: it.apply("{apiVersion: e.com/v1, kind: X}"), "has no X of e.com/v1", id="unknown kind"),
        pytest.param(lambda it: it.get("pods", "web"), "did you mean Pod?", id="a plural"),
        pytest.param(lambda it: it.start_scheduler("{a: 1}\n"), "config.yaml", id="a wrong configuration"),
    ],
)
def test_errors_say_what_would_be_right(use: Any, said: str) -> None:
    with EmbeddedCluster(nodes=0) as cluster, pytest.raises(ConfigError) as raised:
        use(cluster)
    assert said in str(raised.value)


@pytest.mark.parametrize("again", [False, True], ids=["a new object", "one that exists"])
def test_a_field_that_the_kind_does_not_have_is_refused(again: bool) -> None:
    """A misspelt request must not make the test of a manifest pass."""
    with EmbeddedCluster(nodes=1) as cluster:
        if again:
            cluster.apply(POD)
        with pytest.raises(StowplanError, match=r'strict decoding error: unknown field "spec.nodeSelecter"'):
            cluster.apply(POD.replace("spec: {", "spec: {nodeSelecter: {a: b}, "))
        with pytest.raises(StowplanError, match=r'unknown field "spec.unschedulabel"'):
            cluster.patch("Node", "node-0", {"spec": {"unschedulabel": True}})


@pytest.mark.parametrize("name", [name for name in dir(EmbeddedCluster) if not name.startswith("_")])
def test_each_method_says_what_it_does(name: str) -> None:
    if name != "allow_errors":
        assert inspect.getdoc(inspect.getattr_static(EmbeddedCluster, name))


# -- the fixture

STRANGERS_TEST = """
import pytest

POD = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: nginx}]}}"


def test_that_uses_it(embedded_cluster):
    embedded_cluster.start_scheduler()
    embedded_cluster.apply(POD)
    embedded_cluster.wait_until(lambda: embedded_cluster.node_of("default/web"))
    assert len(embedded_cluster.objects("Node")) == 3


@pytest.mark.embedded_cluster(nodes=1)
def test_with_one_node(embedded_cluster):
    assert len(embedded_cluster.objects("Node")) == 1


@pytest.mark.embedded_cluster(nodes={"node.yaml": 2}, manifests=["pod.yaml"], scheduler=True)
def test_with_files_beside_the_test(embedded_cluster):
    assert embedded_cluster.wait_until_scheduled("web") in ("large-0", "large-1")
"""
STRANGERS_OTHER_TEST = """
import sys


def test_that_does_not():
    assert sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "aiohttp", "msgspec"}) == []
"""


def in_a_strangers_project(folder: Path, text: str, code: int = 0) -> str:
    """Run pytest in a folder with nothing but a test, and Stowplan's entry point as pyproject.toml has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = folder / "site" / f"{project['name']}-{project['version']}.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
    lines = [f"{name} = {target}" for name, target in project["entry-points"]["pytest11"].items()]
    (installed / "entry_points.txt").write_text("[pytest11]\n" + "\n".join(lines) + "\n")
    tests = folder / "project" / "tests"
    tests.mkdir(parents=True)
    for name, content in (("test_it.py", text), ("node.yaml", LARGE), ("pod.yaml", POD)):
        (tests / name).write_text(content)
    words = ["-m", "pytest", "-q", "-W", "error", "--strict-markers", "-p", "no:cacheprovider", "tests/test_it.py"]
    path = os.pathsep.join((str(folder / "site"), str(ROOT / "src")))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=folder / "project",
        env=environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout


def test_the_fixture_is_found_in_a_strangers_project(tmp_path: Path) -> None:
    assert "3 passed" in in_a_strangers_project(tmp_path, STRANGERS_TEST)


def test_a_marker_takes_its_arguments_by_name(tmp_path: Path) -> None:
    said = in_a_strangers_project(tmp_path, STRANGERS_TEST.replace("cluster(nodes=1)", "cluster(4)"), code=1)
    assert "embedded_cluster(4,): give the arguments by name, for example nodes=4" in said


def test_a_run_that_does_not_use_it_imports_nothing_of_it(tmp_path: Path) -> None:
    assert "1 passed" in in_a_strangers_project(tmp_path, STRANGERS_OTHER_TEST)
