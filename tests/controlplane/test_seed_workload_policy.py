"""The Kosmos seed's own files, as they stand, in the embedded cluster and on a real one; there with the rights of the
profile `kosmos-scheduler` alone.

On the real one the scheduler starts before the policies' definition is there.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster, KubectlError
from tests.controlplane.conftest import EVERYWHERE
from tests.controlplane.deployed import DEPLOY, check_no_limit_met, deployed
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_deployment, apply, bound, pods, stowplan

SEED = Path(__file__).parents[1] / "seeds" / "workload_policy"
PROFILE, CRDS = DEPLOY / "profiles" / "kosmos-scheduler", DEPLOY / "crds"
NAMESPACE, POLICY = "workload-test", "workload-policy-test"
POLICIES = f"/apis/kosmos.io/v1alpha1/namespaces/{NAMESPACE}/workloadpolicies"


@pytest.fixture(scope="module", params=EVERYWHERE)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With the profile at work in it."""
    found: Cluster = request.getfixturevalue(request.param)
    folder = tmp_path_factory.mktemp("kosmos")
    with ExitStack() as stack:
        if request.param == "embedded":
            program = stack.enter_context(stowplan(found, "kosmos", "--config", str(PROFILE / "config.yaml")))
            program.wait_until_leading()
        else:
            stack.enter_context(granted(found))
            found.kubectl("delete", "--ignore-not-found", "--kustomize", str(CRDS))
            config = yaml.safe_load((PROFILE / "config.yaml").read_text())
            scheduler = stack.enter_context(deployed(found, folder, config))  # type: ignore[arg-type]
            stack.enter_context(defined(found))
            stack.callback(lambda: check_no_limit_met(scheduler.program.log))
        yield found


@contextmanager
def granted(cluster: Cluster) -> Iterator[None]:
    cluster.kubectl("apply", "--filename", str(PROFILE / "rbac.yaml"))
    yield
    cluster.kubectl("delete", "--filename", str(PROFILE / "rbac.yaml"))


@contextmanager
def defined(cluster: Cluster) -> Iterator[None]:
    """Gone afterwards, with all policies."""
    cluster.kubectl("apply", "--kustomize", str(CRDS))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd/workloadpolicies.kosmos.io")
    probe = yaml.safe_load((SEED / "workloadpolicy.yaml").read_text())
    probe["metadata"]["namespace"] = "default"
    apply(cluster, "default", probe)
    told = ("wait", "--for=condition=Valid", "--timeout=120s", f"workloadpolicy/{POLICY}", "--namespace=default")
    cluster.kubectl(*told)
    yield
    cluster.kubectl("delete", "--kustomize", str(CRDS))


@pytest.fixture
def place(cluster: Cluster) -> Iterator[Cluster]:
    """The seed's namespace with its service account, two nodes of the member cluster and four of the host."""
    cluster.check()
    api = cluster.api()
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("create", "serviceaccount", "clusterlink-floater", "--namespace", NAMESPACE)
    member, host = ({NAMESPACE: value} for value in ("member", "host"))
    with cluster.nodes(2, prefix="member", labels=member), cluster.nodes(4, prefix="host", labels=host):
        yield cluster
        api.must("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        api.must("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0")
        until("the namespace is gone", lambda: api.get(f"/api/v1/namespaces/{NAMESPACE}").status == 404, 180)
    cluster.check()


def running(cluster: Cluster) -> Counter[str]:
    """Pods that run, by domain."""
    found = [pod for pod in pods(cluster, NAMESPACE) if pod["status"].get("phase") == "Running"]
    return Counter(pod["spec"]["nodeName"].rpartition("-")[0] for pod in found)


def policy(cluster: Cluster, name: str = POLICY) -> Any:
    return cluster.api().must("GET", f"{POLICIES}/{name}")


def condition(document: Any, kind: str) -> Any:
    conditions = document.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), {})


def apply_seed(cluster: Cluster, *files: str) -> None:
    for file in files:
        cluster.kubectl("apply", "--filename", str(SEED / file))


def events(cluster: Cluster, name: str) -> list[str]:
    found = cluster.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")["items"]
    mine = (each for each in found if each["regarding"]["name"] == name)
    return [each["note"] for each in mine if each["reason"] == "FailedScheduling"]


def as_the_policy_has_it(cluster: Cluster) -> bool:
    return running(cluster) == {"member": 1, "host": 3} and len(pods(cluster, NAMESPACE)) == 6


EXAMPLE = "example-clusterlink-floater-deployment-mix.yaml"


def test_the_test_plan(place: Cluster) -> None:
    """Six replicas, one place in the member cluster, three in the host: two stay pending, and are told why."""
    apply_seed(place, "workloadpolicy.yaml", EXAMPLE)
    until("four run", lambda: as_the_policy_has_it(place), 90, lambda: str(running(place)))
    pending = [pod["metadata"]["name"] for pod in pods(place, NAMESPACE) if not pod["spec"].get("nodeName")]
    assert len(pending) == 2
    expected = f"WorkloadPolicy {POLICY}: member 1/1, host 3/3"
    for name in pending:
        until(f"{name} is told", lambda name=name: any(expected in note for note in events(place, name)), 60)  # type: ignore[misc]
        why = f"node(s) were in domains that WorkloadPolicy {POLICY} has filled"
        assert all(why in note for note in events(place, name) if expected in note)
    domains = [
        {"name": "member", "desired": 1, "current": 1, "pending": 0},
        {"name": "host", "desired": 3, "current": 3, "pending": 0},
    ]
    as_it_is = {"domains": domains, "desired": 4, "current": 4, "pending": 2, "observedGeneration": 1}
    # All of it at once: what the policy was told while the pods came may have one or another of these numbers too.

    def told() -> dict[str, Any]:
        return {key: value for key, value in policy(place).get("status", {}).items() if key in as_it_is}

    until("the policy is told", lambda: told() == as_it_is, 60, lambda: str(told()))
    for kind in ("Valid", "Satisfied"):
        found = condition(policy(place), kind)
        assert (found["status"], found["observedGeneration"]) == ("True", 1) and found["lastTransitionTime"]
    place.kubectl("wait", "--for=condition=Satisfied", "--timeout=60s", "-n", NAMESPACE, f"workloadpolicy/{POLICY}")
    line = place.kubectl("get", "wlp", "-n", NAMESPACE, "--no-headers").split()
    assert line[:7] == [POLICY, NAMESPACE, "Required", "4", "4", "2", "True"]


def test_the_defaults_let_all_run(place: Cluster) -> None:
    """The same, without type and method: Preferred, Balance."""
    document = yaml.safe_load((SEED / "workloadpolicy.yaml").read_text())
    del document["spec"]["allocationType"], document["spec"]["allocationMethod"]
    apply(place, NAMESPACE, document)
    apply_seed(place, EXAMPLE)
    until("all run", lambda: running(place).total() == 6, 90, lambda: str(running(place)))
    assert running(place) == {"member": 2, "host": 4}
    assert len(set(bound(place, NAMESPACE).values())) == 6
    assert "allocationMethod" not in policy(place)["spec"], "no default is filled in"


def test_a_policy_that_comes_late_and_changes(place: Cluster) -> None:
    """The pods are there first and wait for it; once it is only preferred, those that it held back run."""
    apply_seed(place, EXAMPLE)
    expected = f"WorkloadPolicy {POLICY} does not exist"
    names = until_six(place)
    until("they are told", lambda: all(any(expected in note for note in events(place, name)) for name in names), 60)
    apply_seed(place, "workloadpolicy.yaml")
    until("four run", lambda: as_the_policy_has_it(place), 120, lambda: str(running(place)))
    change = json.dumps({"spec": {"allocationType": "preferred"}})
    place.kubectl("patch", "wlp", POLICY, "-n", NAMESPACE, "--type=merge", "--patch", change)
    until("all run", lambda: running(place).total() == 6, 60, lambda: str(running(place)))


def until_six(cluster: Cluster) -> list[str]:
    until("six pods are there", lambda: len(pods(cluster, NAMESPACE)) == 6, 60)
    return [pod["metadata"]["name"] for pod in pods(cluster, NAMESPACE)]


def test_the_designs_policy_fills_by_its_strategy(place: Cluster) -> None:
    """It says scheduleStrategy, and is bound to the Deployment, as the prose says, by the label with a dot."""
    apply_seed(place, "design-details.yaml")
    document = a_deployment("mixed", 5, scheduler="kosmos-scheduler")
    document["metadata"]["labels"] = {"workload-policy.kosmos.io": POLICY}
    document["spec"]["template"]["metadata"]["labels"]["multi-cluster"] = "true"
    apply(place, NAMESPACE, document)
    until("all run", lambda: running(place).total() == 5, 90, lambda: str(running(place)))
    assert running(place) == {"member": 2, "host": 3}
    on_hosts = [node for node in bound(place, NAMESPACE).values() if node.startswith("host")]
    assert len(set(on_hosts)) == 1, "Fill packs within a domain, too"
    assert policy(place)["spec"]["scheduleStrategy"] == "Fill"


def a_rolling_deployment() -> dict[str, Any]:
    document = a_deployment("rolling", 4, scheduler="kosmos-scheduler", terminationGracePeriodSeconds=0)
    document["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    document["spec"]["template"]["metadata"]["labels"]["workload-policy/kosmos.io"] = "rolling"
    return document


def test_a_rolling_update_of_a_required_policy_completes(place: Cluster) -> None:
    spec = {
        "topologyKey": NAMESPACE,
        "labelSelector": {"matchLabels": {"app": "rolling"}},
        "allocationPolicy": [{"name": "member", "replicas": 1}, {"name": "host", "replicas": 3}],
        "allocationType": "Required",
        "matchLabelKeys": ["pod-template-hash"],
    }
    made = {"apiVersion": "kosmos.io/v1alpha1", "kind": "WorkloadPolicy", "metadata": {"name": "rolling"}, "spec": spec}
    document = a_rolling_deployment()
    apply(place, NAMESPACE, made, document)
    rollout = ("rollout", "status", "deployment/rolling", "--timeout=180s", "-n", NAMESPACE)
    place.kubectl(*rollout)
    before = set(bound(place, NAMESPACE))
    document["spec"]["template"]["metadata"]["annotations"] = {"revision": "2"}
    apply(place, NAMESPACE, document)
    place.kubectl(*rollout)
    until("the old ones are gone", lambda: not before & {pod["metadata"]["name"] for pod in pods(place, NAMESPACE)}, 60)
    until("they run where they should", lambda: running(place) == {"member": 1, "host": 3}, 60)
    until("the policy is told", lambda: told_of(place, "rolling") == (4, "True"), 60)


def told_of(place: Cluster, name: str) -> tuple[int, str]:
    """How many pods its status has, and whether it is satisfied with where they are: old ones count until they go."""
    found = policy(place, name)
    return found.get("status", {}).get("current", 0), condition(found, "Satisfied").get("status", "")


def test_what_cannot_be_used_is_refused_or_said(place: Cluster) -> None:
    good = yaml.safe_load((SEED / "workloadpolicy.yaml").read_text())
    for field, value in (("allocationType", "soft"), ("allocationMethod", "Full"), ("topologyKey", "")):
        with pytest.raises(KubectlError, match=f"spec.{field}"):
            apply(place, NAMESPACE, {**good, "spec": {**good["spec"], field: value}})
    for number, spelled in enumerate(("require", "REQUIRED", "preferred", "Preferred")):
        named = {**good, "metadata": {"name": f"spelled-{number}", "namespace": NAMESPACE}}
        apply(
            place, NAMESPACE, {**named, "spec": {**good["spec"], "allocationType": spelled, "allocationMethod": "fill"}}
        )
    apply(place, NAMESPACE, {**good, "spec": {**good["spec"], "labelSelector": {}}})
    why = "labelSelector is empty and would select every pod"
    as_it_is = ("False", why, "Unknown")
    until("it is told", lambda: validity(place) == as_it_is, 60, lambda: str(validity(place)))
    apply_seed(place, EXAMPLE)
    (name, *_) = until_six(place)
    expected = f"WorkloadPolicy {POLICY} is not valid: {why}."
    until("the pod is told", lambda: any(expected in note for note in events(place, name)), 60)
    apply(place, NAMESPACE, good)
    until("four run", lambda: as_the_policy_has_it(place), 120, lambda: str(running(place)))
    until("it is told", lambda: validity(place)[0] == "True", 60, lambda: str(validity(place)))


def validity(place: Cluster) -> tuple[str, str, str]:
    """Whether the policy can be used, why not, and whether it is satisfied; all of one status."""
    found = policy(place)
    valid, satisfied = condition(found, "Valid"), condition(found, "Satisfied")
    return valid.get("status", ""), valid.get("message", ""), satisfied.get("status", "")


def test_kustomize_takes_the_profile_as_a_component(cluster: Cluster, tmp_path: Path) -> None:
    """As its kustomization says: by one line in that of deploy/."""
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    with (folder / "kustomization.yaml").open("a") as file:
        file.write("components: [profiles/kosmos-scheduler]\n")
    rendered = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(folder))))
    kinds = Counter(each["kind"] for each in rendered)
    assert (kinds["ClusterRole"], kinds["CustomResourceDefinition"], kinds["ConfigMap"]) == (2, 1, 1)
    (config,) = (each for each in rendered if each["kind"] == "ConfigMap")
    assert config["metadata"]["name"] == "stowplan"
    assert config["data"]["config.yaml"] == (PROFILE / "config.yaml").read_text()
