"""WorkloadPolicy: which pods have one, and which nodes it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.framework.decision import SKIP, RejectPod
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects.meta import Object
from stowplan.plugins import BUILT_IN
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin
from stowplan.testing.builders import a_cluster, a_pod, a_state
from stowplan.testing.plugin_questions import filtered
from tests.plugins.nodes.workload_policy.policies import (
    APP,
    DOT,
    SLASH,
    a_member,
    a_policy,
    an_owner,
    placed,
    reference,
    zoned,
)

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"
NO_LABEL = "node(s) didn't have label zone of WorkloadPolicy policy"
UNLISTED = "node(s) were in domains that WorkloadPolicy policy doesn't list"
FULL = "node(s) were in domains that WorkloadPolicy policy has filled"
REPLICAS, STATEFUL = reference("ReplicaSet", "web-1"), reference("StatefulSet", "db")

# -- whose policy is it?


def policy_of(pod: Any, *others: Object) -> str | tuple[str, ...] | None:
    """The name of the policy that holds for a pod, or the reasons why it is refused, or None."""
    found = WorkloadPolicyPlugin()._found(pod, a_cluster(nodes=["a"], others=others))
    return found.reasons if isinstance(found, RejectPod) else None if found is None else found.name


P, Q = a_policy(name="p"), a_policy(name="q")
DEPLOYMENT = ("Deployment", "web")
NOT_X = {"key": "app", "operator": "NotIn", "values": ["x"]}


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(a_member(policy=""), [P], None, id="no label, no owner"),
        pytest.param(a_member(policy="p"), [P, Q], "p", id="the label with a slash"),
        pytest.param(a_member(policy="p", key=DOT), [P, Q], "p", id="the label with a dot"),
        pytest.param(a_member(labels={SLASH: "p", DOT: "q"}), [P, Q], "p", id="both: the slash wins"),
        pytest.param(a_member(labels={SLASH: "", DOT: "q"}), [P, Q], "q", id="an empty label is none"),
        pytest.param(
            a_member(policy="", owner=REPLICAS), [P, an_owner("ReplicaSet", "web-1", policy="p")], "p",
            id="its ReplicaSet's",
        ),
        pytest.param(
            a_member(policy="", owner=REPLICAS),
            [P, an_owner("ReplicaSet", "web-1", of=DEPLOYMENT), an_owner("Deployment", "web", policy="p", key=DOT)],
            "p",
            id="its Deployment's",
        ),
        pytest.param(
            a_member(policy="", owner=REPLICAS),
            [P, Q, an_owner("ReplicaSet", "web-1", policy="q", of=DEPLOYMENT), an_owner(*DEPLOYMENT, policy="p")],
            "q",
            id="the nearer owner's",
        ),
        pytest.param(
            a_member(policy="q", owner=REPLICAS), [P, Q, an_owner("ReplicaSet", "web-1", policy="p")], "q",
            id="its own first",
        ),
        pytest.param(
            a_member(policy="", owner=STATEFUL), [P, an_owner("StatefulSet", "db", policy="p")], "p",
            id="its StatefulSet's",
        ),
        pytest.param(
            a_member(policy="", owner=REPLICAS), [P, an_owner("ReplicaSet", "web-1")], None, id="nobody names one"
        ),
        pytest.param(
            a_member(policy="", owner=REPLICAS),
            [],
            ("ReplicaSet web-1, which may name a WorkloadPolicy, is not known yet",),
            id="an owner that the watch has not told of yet",
        ),
        pytest.param(
            a_member(policy="", owner={**STATEFUL, "uid": "another"}), [P, an_owner("StatefulSet", "db", policy="p")],
            ("StatefulSet db, which may name a WorkloadPolicy, is not known yet",),
            id="another one of the same name is known",
        ),
        pytest.param(
            a_member(policy="", owner={**REPLICAS, "apiVersion": "example.io/v1"}), [], None, id="of another group"
        ),
        pytest.param(a_member(policy="", owner=reference("Job", "j")), [], None, id="an owner of another kind"),
        pytest.param(a_member(policy="p", owner=reference("DaemonSet", "d")), [P], None, id="pods of DaemonSets"),
        pytest.param(a_member(policy="p"), [], ("WorkloadPolicy p does not exist",), id="it is not there"),
        pytest.param(
            a_member(policy="p"), [a_policy(name="p", namespace="n")], ("WorkloadPolicy p does not exist",),
            id="one of another namespace",
        ),
        pytest.param(
            a_member(policy="p"), [a_policy(name="p", topologyKey="", labelSelector={})],
            ("WorkloadPolicy p is not valid: topologyKey is empty; labelSelector is empty and would select every pod",),
            id="it is not valid",
        ),
        pytest.param(
            a_pod(labels={SLASH: "p", "app": "y"}), [P],
            ("pod's labels don't match the labelSelector of WorkloadPolicy p",), id="it does not select the pod",
        ),
        pytest.param(
            a_pod(labels={SLASH: "p", "app": "y"}), [a_policy(name="p", allocationType="Required")],
            ("pod's labels don't match the labelSelector of WorkloadPolicy p",), id="it does not, and is Required",
        ),
        pytest.param(
            a_pod(labels={SLASH: "p", "app": "y"}),
            [a_policy(name="p", labelSelector={"matchExpressions": [NOT_X]})],
            "p",
            id="an expression selects it",
        ),
    ],
)  # fmt: skip
def test_a_pods_policy(pod: Any, others: list[Any], expected: Any) -> None:
    assert policy_of(pod, *others) == expected


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        pytest.param(a_member(policy=""), SKIP, id="nothing to do"),
        pytest.param(a_member(), SKIP, id="a policy that refuses no node"),
        pytest.param(a_member(policy="strict"), None, id="a policy that may"),
        pytest.param(
            a_member(policy="q"),
            RejectPod(("WorkloadPolicy q does not exist",), resolvable=False, waits=True),
            id="waits",
        ),
    ],
)
def test_pre_filter(pod: Any, answer: Any) -> None:
    policies = [a_policy(), a_policy(name="strict", strictTopology=True)]
    assert WorkloadPolicyPlugin().pre_filter(pod, a_cluster(nodes=["a"], others=policies)) == answer


@pytest.mark.parametrize(
    ("nodes", "pods", "refuses"),
    [
        pytest.param(zoned("a1", "b1"), [], False, id="places everywhere"),
        pytest.param(zoned("a1", "b1"), placed("a1"), True, id="a domain is full"),
        pytest.param(zoned("a1", "c1"), [], True, id="a domain is not listed"),
        pytest.param(zoned("a1", "-x"), [], True, id="a node is in none"),
        pytest.param(zoned("a1", "b1"), [a_pod("promised", nominated="a1")], True, id="a domain may soon be full"),
    ],
)
def test_a_filter_that_could_refuse_nobody_is_not_asked(nodes: list[Any], pods: list[Any], refuses: bool) -> None:
    policy = a_policy({"a": 1, "b": 1}, allocationType="Required")
    answer = WorkloadPolicyPlugin().pre_filter(a_member(), a_cluster(nodes=nodes, pods=pods, others=[policy]))
    assert answer is (None if refuses else SKIP)


def test_a_filter_without_its_pre_filter_refuses_the_pod_everywhere() -> None:
    said = filtered(WorkloadPolicyPlugin(), a_member(policy="q"), a_state(nodes=["a", "b"]))
    assert said == dict.fromkeys("ab", (UU, ("WorkloadPolicy q does not exist",)))


# -- which nodes does it refuse?

NODES = zoned("a1", "a2", "b1", "c1", "-x")
REQUIRED: dict[str, Any] = {"allocationType": "Required"}


@pytest.mark.parametrize(
    ("policy", "pods", "expected"),
    [
        pytest.param(a_policy(), placed("a1", "a1", "b1", "b1"), {}, id="Preferred refuses nobody"),
        pytest.param(
            a_policy(strictTopology=True), placed("a1", "a1"), {"c1": (UU, UNLISTED), "-x": (UU, NO_LABEL)},
            id="Preferred with strictTopology: what is not listed, but not what is full",
        ),
        pytest.param(
            a_policy(**REQUIRED), placed("a1"), {"c1": (UU, UNLISTED), "-x": (UU, NO_LABEL)}, id="Required: room left"
        ),
        pytest.param(
            a_policy(**REQUIRED), placed("a1", "a2"),
            {"a1": (U, FULL), "a2": (U, FULL), "c1": (UU, UNLISTED), "-x": (UU, NO_LABEL)},
            id="Required: full, and evicting helps on both nodes",
        ),
        pytest.param(
            a_policy(**REQUIRED), placed("a1", "a1"),
            {"a1": (U, FULL), "a2": (UU, FULL), "c1": (UU, UNLISTED), "-x": (UU, NO_LABEL)},
            id="Required: full, and evicting helps where its pods are",
        ),
        pytest.param(
            a_policy({"a": 1, "b": 1, "c": 1}, **REQUIRED), placed("a1", "a2", "a2"),
            {"a1": (UU, FULL), "a2": (UU, FULL), "-x": (UU, NO_LABEL)},
            id="Required: so full that one node's pods are not enough",
        ),
        pytest.param(
            a_policy({"a": 0, "b": 1, "c": 1}, **REQUIRED), [],
            {"a1": (UU, FULL), "a2": (UU, FULL), "-x": (UU, NO_LABEL)}, id="Required: nothing desired",
        ),
        pytest.param(
            a_policy({"a": 1, "b": 1, "c": 1, "z": 1}, **REQUIRED), [], {"-x": (UU, NO_LABEL)}, id="a domain of none"
        ),
    ],
)  # fmt: skip
def test_refused_nodes(policy: Any, pods: list[Any], expected: dict[str, tuple[str, str]]) -> None:
    said = filtered(WorkloadPolicyPlugin(), a_member(), a_state(nodes=NODES, pods=pods, others=[policy]))
    assert {name: (each[0], *each[1]) for name, each in said.items() if each is not None} == expected


@pytest.mark.parametrize(
    ("pods", "full"),
    [
        pytest.param(placed("a1", "a2"), True, id="two that it selects"),
        pytest.param(placed("a1", "a2", terminating=True), False, id="those on their way out do not count"),
        pytest.param(placed("a1", "a2", phase="Succeeded"), False, id="nor do those that are done"),
        pytest.param(placed("a1", "a2", namespace="other"), False, id="nor those of another namespace"),
        pytest.param(placed("a1", "a2", labels={"app": "y"}), False, id="nor those that it does not select"),
        pytest.param(placed("a1", "a2", policy=""), True, id="those that name no policy do"),
        pytest.param(placed("a1", "gone"), False, id="a node that is not there is in no domain"),
        pytest.param(placed("a1", "a2", owner=reference("DaemonSet", "d")), False, id="nor do pods of DaemonSets"),
        pytest.param(placed("a1", "a2", owner=reference("Job", "j")), True, id="those of other owners do"),
    ],
)
@pytest.mark.parametrize("keys", [[], ["tier"]])
def test_who_counts(pods: list[Any], full: bool, keys: list[str]) -> None:
    policy = a_policy({"a": 2}, **REQUIRED, matchLabelKeys=keys)
    state = a_state(nodes=zoned("a1", "a2"), pods=pods, others=[policy])
    assert all(filtered(WorkloadPolicyPlugin(), a_member(), state).values()) is full


@pytest.mark.parametrize(
    ("selector", "full"),
    [
        pytest.param(APP, True, id="labels"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True, id="an expression alone"),
        pytest.param(
            {**APP, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}]}, False, id="both"
        ),
    ],
)
def test_whole_selectors(selector: dict[str, Any], full: bool) -> None:
    policy = a_policy({"a": 1}, **REQUIRED, labelSelector=selector)
    state = a_state(nodes=zoned("a1"), pods=placed("a1", labels={"tier": "back"}), others=[policy])
    assert (filtered(WorkloadPolicyPlugin(), a_member(), state)["a1"] is not None) is full


@pytest.mark.parametrize(
    ("mine", "full"),
    [
        pytest.param({"hash": "2"}, False, id="another revision does not count"),
        pytest.param({"hash": "1"}, True, id="the same does"),
        pytest.param({}, True, id="a pod without the label counts all"),
    ],
)
def test_match_label_keys(mine: dict[str, str], full: bool) -> None:
    policy = a_policy({"a": 1}, **REQUIRED, matchLabelKeys=["hash"])
    state = a_state(nodes=zoned("a1"), pods=placed("a1", labels={"hash": "1"}), others=[policy])
    assert (filtered(WorkloadPolicyPlugin(), a_member(labels=mine), state)["a1"] is not None) is full


def test_an_upstream_fact() -> None:
    """zone1 2 with 1 there, zone2 3 with 3, zone4 4 with none; zone3 is not listed."""
    policy = a_policy({"1": 2, "2": 3, "4": 4}, **REQUIRED)
    state = a_state(nodes=zoned("1", "2", "3", "4"), pods=placed("1", "2", "2", "2"), others=[policy])
    said = filtered(WorkloadPolicyPlugin(), a_member(), state)
    assert {name: each and each[1] for name, each in said.items()} == {
        "1": None,
        "2": (FULL,),
        "3": (UNLISTED,),
        "4": None,
    }


@pytest.mark.parametrize(("gone", "passes"), [([], False), (["p0"], True), (["p1"], False), (["p2"], False)])
def test_trials_see_the_counts_change(gone: list[str], passes: bool) -> None:
    """p0 counts; p1 is leaving and does not, not even as a victim; p2 is none of the policy's."""
    pods = [
        *placed("a1"),
        a_member("p1", node="a1", terminating=True),
        a_pod("p2", node="a1", labels={"app": "y"}),
    ]
    state = a_state(nodes=zoned("a1"), pods=pods, others=[a_policy({"a": 1}, **REQUIRED)])
    before = Cluster(state)
    assert WorkloadPolicyPlugin().pre_filter(a_member(), before) is None
    with state.trial() as trial:
        for name in gone:
            trial.remove_pod(f"uid-of-default-{name}", as_extension=True)
        rejects = list(WorkloadPolicyPlugin().filter(a_member(), Cluster(state, before.notes).nodes))
    refused = any(reject.rows.any() for reject in rejects)
    assert refused is not passes


# -- as a plugin


@pytest.mark.parametrize("type_", ["Required", "Preferred"])
@pytest.mark.parametrize("method", ["Balance", "Fill"])
def test_it_keeps_the_contract(type_: str, method: str) -> None:
    policy = a_policy({"a": 2, "b": 1, "c": 0}, allocationType=type_, allocationMethod=method)
    pods = [a_member(), a_member(policy="q"), a_member(labels={"app": "y"})]
    idle = {"its_owner": "its pods have no owner"} | ({"filter": "it only scores"} if type_ == "Preferred" else {})
    assert check_plugin(WorkloadPolicyPlugin(), pods=pods, objects=[policy], idle=idle) == []


UPSTREAM = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: kosmos-scheduler
    plugins:
      preFilter: {enabled: [{name: LeafNodeWorkloadPolicy}]}
      filter: {enabled: [{name: LeafNodeWorkloadPolicy}]}
      score: {enabled: [{name: LeafNodeWorkloadPolicy}]}
      reserve: {enabled: [{name: LeafNodeWorkloadPolicy}]}
    pluginConfig:
      - name: LeafNodeWorkloadPolicy
        args: {kubeConfigPath: /etc/kubernetes/kubeconfig}
"""


def test_a_configuration_written_for_the_original() -> None:
    configuration, profiles = profile_loader.configured(UPSTREAM)
    assert isinstance(profiles["kosmos-scheduler"].plugin("LeafNodeWorkloadPolicy"), WorkloadPolicyPlugin)
    (note,) = configuration.notes
    assert "args: kubeConfigPath is not used" in note
    assert BUILT_IN["LeafNodeWorkloadPolicy"] is BUILT_IN["WorkloadPolicy"] is WorkloadPolicyPlugin
