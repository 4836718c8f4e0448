"""SPPriority from its seed's own files, unedited, and from its profile; in the embedded cluster and on a real one.

    as in the seed    its configuration and its rights, with kube-scheduler's user and in kube-scheduler's place
    as a profile      deploy/profiles/sp-priority, with the rights of deploy/rbac.yaml and its own

The embedded cluster knows no rights; on the real one these are all that the scheduler has.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.plugins.nodes.sp_priority.plugin import STATE
from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import ACCOUNT, DEPLOY, NAMESPACE
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_container, a_deployment, apply, pods

SEED = Path(__file__).parents[1] / "seeds" / "sp_priority"
PROFILE = DEPLOY / "profiles" / "sp-priority"
TEMPLATE_HASH = "deployment.kubernetes.io/revision"


class Setup:
    """A cluster with a scheduler that may be killed and started again."""

    def __init__(self, cluster: Cluster, kubeconfig: Path, config: Path, scheduler: str) -> None:
        self.cluster, self.scheduler, self._kubeconfig, self._config = cluster, scheduler, kubeconfig, config
        self._started: list[Stowplan] = []

    @property
    def program(self) -> Stowplan:
        return self._started[-1]

    def start(self, **args: Any) -> None:
        """With further arguments of the policy, if there are any."""
        config = self._config
        if args:
            document = yaml.safe_load(config.read_text(encoding="utf-8"))
            document["profiles"][0]["pluginConfig"][0]["args"] |= {
                "configFile": str(PROFILE / "sppriority.yaml"),
                **args,
            }
            config = self.cluster.folder / "sp-priority-other.yaml"
            config.write_text(yaml.safe_dump(document), encoding="utf-8")
        name = f"sp-priority-{self.scheduler}-{len(self._started)}"
        arguments = ("--config", str(config), "--leader-elect=false")
        self._started.append(Stowplan(self._kubeconfig, self.cluster.folder, name, *arguments))
        self.program.wait_until_ready()

    def kill(self) -> None:
        """As kill -9 does."""
        self.program.kill()

    def stop(self) -> None:
        self.program.stop(grace=90)
        for program in self._started:  # events in a namespace that is going are forbidden as well, for another reason
            met = re.findall(r".*cannot \w+ resource.*", program.log.read_text(encoding="utf-8"))
            assert not met, "it never met its limits"


@pytest.fixture
def as_in_the_seed(cluster: Cluster) -> Iterator[Setup]:
    with ExitStack() as stack:
        if isinstance(cluster, ControlPlane):
            stack.enter_context(granted(cluster, SEED / "rbac.yaml"))
        yield Setup(cluster, cluster.kubeconfig("scheduler"), SEED / "config.yaml", "default-scheduler")


@pytest.fixture
def as_a_profile(cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Setup]:
    config = tmp_path / "config.yaml"
    text = (PROFILE / "config.yaml").read_text(encoding="utf-8")
    config.write_text(text.replace("sppriority.yaml", f"{PROFILE}/sppriority.yaml", 1), encoding="utf-8")
    with ExitStack() as stack:
        kubeconfig = cluster.kubeconfig()
        if isinstance(cluster, ControlPlane):
            cluster.kubectl("apply", "--filename", str(DEPLOY / "rbac.yaml"))
            stack.enter_context(granted(cluster, PROFILE / "rbac.yaml"))
            if "more_owners" in request.fixturenames:
                stack.enter_context(granted(cluster, PROFILE / "rbac-more-owners.yaml"))
            kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        yield Setup(cluster, kubeconfig, config, "sp-scheduler")


@pytest.fixture(params=["as_in_the_seed", "as_a_profile"])
def setup(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Setup]:  # the cluster is there before either
    found: Setup = request.getfixturevalue(request.param)
    yield found
    found.stop()


@pytest.fixture
def more_owners() -> None:
    """A test with it has the rights for Deployments and StatefulSets as well."""


@pytest.fixture
def profile(as_a_profile: Setup) -> Iterator[Setup]:
    yield as_a_profile
    as_a_profile.stop()


def granted(cluster: Cluster, file: Path) -> Any:
    """These rights, for a while."""
    documents = [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]
    return cluster.having(*documents)


# -- what there is in the cluster


def living(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    return [pod for pod in pods(cluster, namespace) if not pod["metadata"].get("deletionTimestamp")]


def history(cluster: Cluster, namespace: str, kind: str = "replicasets") -> dict[str, Any]:
    """Of the one owner there is."""
    owners = cluster.api().must("GET", f"/apis/apps/v1/namespaces/{namespace}/{kind}")["items"]
    texts = [owner["metadata"].get("annotations", {}).get(STATE, "{}") for owner in owners]
    assert len(texts) <= 1
    return json.loads(texts[0]) if texts else {}


class Pod:
    """The only pod of an owner, which is created again whenever it is deleted."""

    def __init__(self, setup: Setup, namespace: str) -> None:
        self._setup, self._cluster, self._namespace = setup, setup.cluster, namespace
        self._seen: set[str] = set()
        self.nodes: list[str] = []  # one after the other

    def exists(self) -> dict[str, Any] | None:
        """One that was not seen before."""
        new = [pod for pod in living(self._cluster, self._namespace) if pod["metadata"]["uid"] not in self._seen]
        return new[0] if new else None

    def settles(self) -> None:
        """It is bound."""

        def bound() -> dict[str, Any] | None:
            pod = self.exists()
            return pod if pod is not None and pod["spec"].get("nodeName") else None

        pod = until("the pod is bound", bound, 120, self._setup.program.explain)
        assert pod is not None
        self._seen.add(pod["metadata"]["uid"])
        self.nodes.append(pod["spec"]["nodeName"])

    def delete(self) -> None:
        for pod in living(self._cluster, self._namespace):
            self._cluster.api().must("DELETE", f"/api/v1/namespaces/{self._namespace}/pods/{pod['metadata']['name']}")

    def check(self, kind: str = "replicasets") -> None:
        """It never was where the one before it had been, and the counts are the number of binds."""
        assert all(one != another for one, another in pairwise(self.nodes)), self.nodes
        expected = {"latest": self.nodes[-1], "node_count": Counter(self.nodes)}
        is_counted: Callable[[], bool] = lambda: history(self._cluster, self._namespace, kind) == expected  # noqa: E731
        until(f"{expected} is counted", is_counted, 60, lambda: str(history(self._cluster, self._namespace, kind)))


# -- what the seed says


@pytest.mark.parametrize("killed", [pytest.param(False, id="undisturbed"), pytest.param(True, id="killed in between")])
def test_a_deployment_of_one_replica_deleted_ten_times(setup: Setup, namespace: str, killed: bool) -> None:
    with setup.cluster.nodes(3, prefix="sp"):
        setup.start()
        apply(setup.cluster, namespace, a_deployment("web", 1, scheduler=setup.scheduler))
        pod = Pod(setup, namespace)
        pod.settles()
        for number in range(10):
            if killed and number % 3 == 0:  # bound a moment ago, and perhaps not counted yet
                setup.kill()
                pod.delete()
                setup.start()
            elif killed and number % 3 == 1:  # somewhere between the decision and the binding
                pod.delete()
                until("the next pod is there", pod.exists)
                setup.kill()
                setup.start()
            else:
                pod.delete()
            pod.settles()
        pod.check()
        assert len(pod.nodes) == 11 and set(pod.nodes) == {"sp-0", "sp-1", "sp-2"}
        (owner,) = setup.cluster.api().must("GET", f"/apis/apps/v1/namespaces/{namespace}/replicasets")["items"]
        assert owner["metadata"]["annotations"][TEMPLATE_HASH] == "1", "what others annotate is still there"


# -- beyond it


@pytest.mark.usefixtures("more_owners")
def test_a_deployment_keeps_its_history_over_rollouts(profile: Setup, namespace: str) -> None:
    cluster = profile.cluster
    with cluster.nodes(3, prefix="sp"):
        profile.start(stateOwner="Deployment")
        apply(cluster, namespace, a_deployment("web", 1, scheduler=profile.scheduler))
        pod = Pod(profile, namespace)
        pod.settles()
        for number in range(4):
            cluster.kubectl("set", "env", "deployment/web", f"ROUND={number}", "--namespace", namespace)
            pod.settles()
            cluster.kubectl("rollout", "status", "deployment/web", "--timeout=120s", "--namespace", namespace)
        pod.check("deployments")


@pytest.mark.usefixtures("more_owners")
def test_a_stateful_set(profile: Setup, namespace: str) -> None:
    cluster = profile.cluster
    # Without a grace period the server itself removes the pod. With one, kwok does, and now and then the next pod of
    # the same name was seen to go with it, before this test could see where it was.
    pod_spec = {"terminationGracePeriodSeconds": 0}
    document = a_deployment("db", 1, scheduler=profile.scheduler, **pod_spec) | {"kind": "StatefulSet"}
    document["spec"]["serviceName"] = "db"
    with cluster.nodes(3, prefix="sp"):
        profile.start(statefulSets=True)
        apply(cluster, namespace, document)
        pod = Pod(profile, namespace)
        pod.settles()
        for _ in range(4):
            pod.delete()
            pod.settles()
        pod.check("statefulsets")


def test_several_replicas_at_once_are_counted_each(profile: Setup, namespace: str) -> None:
    cluster = profile.cluster
    with cluster.nodes(3, prefix="sp"):
        profile.start(skipMultiReplica=False)
        apply(cluster, namespace, a_deployment("web", 12, scheduler=profile.scheduler))

        def counted(number: int) -> bool:
            found = history(cluster, namespace)
            return sum(found.get("node_count", {}).values()) == number and "pending" not in found

        until("twelve pods are counted", lambda: counted(12), 120, profile.program.explain)
        for pod in living(cluster, namespace):
            cluster.api().must("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}")
        until("twelve more are", lambda: counted(24), 120, profile.program.explain)


def test_an_owner_without_any_annotation(profile: Setup, namespace: str) -> None:
    """The first write is made on top of nothing, which a server must understand as such."""
    cluster, labels = profile.cluster, {"app": "bare"}
    spec = {"schedulerName": profile.scheduler, "containers": [a_container()]}
    body = {
        "metadata": {"name": "bare"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    with cluster.nodes(2, prefix="sp"):
        profile.start()
        cluster.api().must("POST", f"/apis/apps/v1/namespaces/{namespace}/replicasets", body)
        pod = Pod(profile, namespace)
        pod.settles()
        pod.check()


# -- the manifests


@pytest.mark.controlplane
def test_a_server_takes_the_profile(plane: ControlPlane, tmp_path: Path) -> None:
    """As its first lines say: by one line in deploy/kustomization.yaml."""
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    file = folder / "kustomization.yaml"
    file.write_text(file.read_text() + "\ncomponents: [profiles/sp-priority]\n")
    plane.kubectl("apply", "--dry-run=server", "--kustomize", str(folder))
    rendered = list(yaml.safe_load_all(plane.kubectl("kustomize", str(folder))))
    (config,) = (each["data"] for each in rendered if each["kind"] == "ConfigMap")
    assert {name: text == (PROFILE / name).read_text() for name, text in config.items()} == {
        "config.yaml": True,
        "sppriority.yaml": True,
    }
    assert "system:sp-scheduler" in [each["metadata"]["name"] for each in rendered if each["kind"] == "ClusterRole"]
