"""The remedies of small clusters, one kind at a time: what is said, and where the pod would go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stowplan.columns.state import ClusterState
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.remedy import AddNodes, Operation, PatchObject, Remedy
from stowplan.diagnosis.search import diagnose
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_node, a_pod, a_profile, a_state
from stowplan.testing.comparison import contents


def found(pod: Pod, state: ClusterState, **more: Any) -> Diagnosis:
    return diagnose(pod, state, a_profile(), **more)


def texts(diagnosis: Diagnosis, code: str) -> list[tuple[str, str | None]]:
    return [(remedy.text, remedy.node) for remedy in diagnosis.remedies if remedy.code == code]


def codes(diagnosis: Diagnosis) -> list[str]:
    return list(dict.fromkeys(remedy.code for remedy in diagnosis.remedies))


def operations(remedy: Remedy) -> list[Operation]:
    return [each for change in remedy.changes if isinstance(change, PatchObject) for each in change.operations]


def an_object(kind: str, **fields: Any) -> Object:
    return kinds.convert(kinds.KINDS[kind], fields)


def anti_affinity(key: str, **labels: str) -> Mapping[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": labels}}]}}


# -- the pod


def test_a_request_is_lowered_by_the_smallest_deficit() -> None:
    state = a_state(nodes=[a_node("a", cpu=2), a_node("b", cpu=4)], pods=[a_pod("other", cpu="500m", node="b")])
    diagnosis = found(a_pod(cpu=9), state)
    (remedy, *_) = diagnosis.remedies
    assert (remedy.code, remedy.node) == ("lower-request", "b")
    assert remedy.text == "lower the cpu request of container main from 9 to 3500m"
    assert operations(remedy) == [Operation("replace", "/spec/containers/0/resources/requests/cpu", "3500m")]


def test_two_resources_are_two_changes_and_limits_follow_what_cannot_be_overcommitted() -> None:
    resources = {"requests": {"cpu": "9", "example.com/gpu": "4"}, "limits": {"example.com/gpu": "4"}}
    containers = [{"name": "main", "resources": resources}]
    state = a_state(nodes=[a_node("a", resources={"example.com/gpu": 1})])
    (remedy, *_) = found(a_pod(containers=containers), state).remedies
    base = "/spec/containers/0/resources"
    assert operations(remedy) == [
        Operation("replace", f"{base}/requests/cpu", "4"),
        Operation("replace", f"{base}/requests/example.com~1gpu", "1"),
        Operation("replace", f"{base}/limits/example.com~1gpu", "1"),
    ]


def test_init_containers_are_lowered_with_the_sidecars_before_them_in_mind() -> None:
    init = [
        {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "8"}}},
    ]
    state = a_state(nodes=[a_node("a", cpu=4)])
    (remedy, *_) = found(a_pod(cpu=1, initContainers=init), state).remedies
    assert remedy.text == "lower the cpu request of init container setup from 8 to 3"


def test_a_taint_is_tolerated_or_removed() -> None:
    state = a_state(nodes=[a_node("a", taints=["dedicated=gpu:NoSchedule"])])
    diagnosis = found(a_pod(), state)
    assert texts(diagnosis, "tolerate") == [("tolerate dedicated=gpu:NoSchedule", "a")]
    assert texts(diagnosis, "remove-taint") == [("remove the taint dedicated=gpu:NoSchedule from node a", "a")]
    value = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    assert operations(diagnosis.remedies[0]) == [Operation("add", "/spec/tolerations", [value])]


def test_one_toleration_does_for_two_taints_with_one_key() -> None:
    state = a_state(nodes=[a_node("a", taints=["dedicated=gpu:NoSchedule", "dedicated=gpu:NoExecute"])])
    (remedy, *_) = found(a_pod(), state).remedies
    value = {"key": "dedicated", "operator": "Equal", "value": "gpu"}
    assert operations(remedy) == [Operation("add", "/spec/tolerations", [value])]


def test_a_cordoned_node_is_uncordoned_with_its_taint() -> None:
    node = a_node("a", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"])
    diagnosis = found(a_pod(), a_state(nodes=[node]))
    assert texts(diagnosis, "uncordon") == [("uncordon node a", "a")]
    assert codes(diagnosis)[0] == "uncordon"


def test_the_nearest_spelling_of_a_label_comes_first() -> None:
    nodes = [a_node(value, labels={"disk": value}) for value in ("hdd", "ssd", "nvme")]
    diagnosis = found(a_pod(node_selector={"disk": "sdd"}), a_state(nodes=nodes))
    assert texts(diagnosis, "selector-value")[0] in {
        ("change disk in nodeSelector from sdd to ssd", "ssd"),
        ("change disk in nodeSelector from sdd to hdd", "hdd"),
    }
    assert ("remove disk=sdd from nodeSelector", "hdd") in texts(diagnosis, "drop-requirement")
    assert texts(diagnosis, "label-node")[0][0].endswith("disk=sdd")


def test_one_label_on_a_node_meets_two_conditions() -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    diagnosis = found(a_pod(node_selector={"disk": "ssd"}, affinity=affinity), a_state(nodes=["a"]))
    assert texts(diagnosis, "label-node") == [("label node a disk=ssd", "a")]


def test_the_last_condition_of_a_term_takes_the_whole_affinity_with_it() -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
    pod = a_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    (remedy, *_) = found(pod, a_state(nodes=["a"])).remedies
    assert operations(remedy) == [Operation("remove", f"/spec/affinity/nodeAffinity/{REQUIRED}")]


def test_a_term_of_anti_affinity_is_dropped_or_the_other_pod_deleted() -> None:
    state = a_state(
        nodes=[a_node("a", labels={HOSTNAME: "a"})], pods=[a_pod("cache", labels={"app": "cache"}, node="a")]
    )
    diagnosis = found(a_pod(affinity=anti_affinity(HOSTNAME, app="cache")), state)
    assert texts(diagnosis, "drop-anti-affinity-term")[0][1] == "a"
    assert texts(diagnosis, "free-room") == [("delete pod default/cache", "a")]
    assert [remedy.evicted for remedy in diagnosis.remedies if remedy.code == "free-room"] == [("default/cache",)]


def test_the_smallest_skew_that_helps_is_named() -> None:
    nodes = [a_node(name, labels={"zone": name}) for name in ("a", "b")]
    pods = [a_pod(f"web-{at}", labels={"app": "web"}, node="a") for at in range(4)]
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    constraint["nodeAffinityPolicy"] = "Ignore"
    pod = a_pod(labels={"app": "web"}, topologySpreadConstraints=[constraint], node_selector={"zone": "a"})
    diagnosis = found(pod, a_state(nodes=nodes, pods=pods))
    assert texts(diagnosis, "raise-max-skew") == [("raise maxSkew for zone from 1 to 5", "a")]
    assert texts(diagnosis, "schedule-anyway")[0][1] == "a"


def test_domains_of_tainted_nodes_need_not_count() -> None:
    nodes = [a_node("a", labels={"zone": "a"}), a_node("b", labels={"zone": "b"}, taints=["k:NoSchedule"])]
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    state = a_state(nodes=nodes, pods=[a_pod("web", labels={"app": "web"}, node="a")])
    diagnosis = found(a_pod(labels={"app": "web"}, topologySpreadConstraints=[constraint]), state)
    (remedy,) = [each for each in diagnosis.remedies if each.code == "honor-taints"]
    assert remedy.text.startswith("set nodeTaintsPolicy of the spreading over zone to Honor")
    assert remedy.node == "a"
    assert operations(remedy) == [Operation("add", "/spec/topologySpreadConstraints/0/nodeTaintsPolicy", "Honor")]


def test_a_request_that_is_lowered_by_more_than_half_comes_after_changes_that_evict_nothing() -> None:
    nodes = [a_node("small", cpu=2), a_node("kept", cpu=16, taints=["k:NoSchedule"])]
    diagnosis = found(a_pod(cpu=8), a_state(nodes=nodes))
    assert codes(diagnosis) == ["tolerate", "remove-taint", "lower-request"]
    assert diagnosis.remedies[-1].ranked_as == "lower-request by more than half"
    assert diagnosis.remedies[-1].also == ("it would ask for less than half of the cpu that it asks for now",)


def test_fewer_gpus_come_after_changes_that_evict_nothing() -> None:
    gpus = {"requests": {"example.com/gpu": "4"}, "limits": {"example.com/gpu": "4"}}
    nodes = [
        a_node("a", resources={"example.com/gpu": 3}),
        a_node("b", unschedulable=True, resources={"example.com/gpu": 4}),
    ]
    diagnosis = found(a_pod(containers=[{"name": "main", "resources": gpus}]), a_state(nodes=nodes))
    assert codes(diagnosis).index("uncordon") < codes(diagnosis).index("lower-request")


def test_another_host_port_is_free_on_the_node() -> None:
    state = a_state(nodes=["a"], pods=[a_pod("one", ports=[80], node="a"), a_pod("two", ports=[81], node="a")])
    assert texts(found(a_pod(ports=[80]), state), "host-port") == [("use host port 82 instead of 80", "a")]


def test_gates_are_removed_all_at_once() -> None:
    pod = a_pod(schedulingGates=[{"name": "x"}, {"name": "y"}])
    state = a_state(nodes=["a", a_node("b", taints=["k:NoSchedule"])])
    assert [(each.code, each.text, each.node) for each in found(pod, state).remedies] == [
        ("remove-gates", "remove the scheduling gates x, y", "a")
    ]


def test_a_scheduler_that_nobody_runs_is_the_first_thing_to_change() -> None:
    pod, profile = a_pod(schedulerName="other"), a_profile()
    diagnosis = diagnose(pod, a_state(nodes=["a"]), None, profiles={"default-scheduler": profile})
    assert [(each.code, each.node) for each in diagnosis.remedies] == [("scheduler-name", "a")]
    assert [each.code for each in diagnosis.waits] == ["no-scheduler"]


def test_the_lowest_priority_that_evicts_is_named_with_its_victims() -> None:
    pods = [a_pod(f"p{at}", cpu=2, priority=10 * (at + 1), node="a") for at in range(2)]
    diagnosis = found(a_pod(cpu=2, priority=5), a_state(nodes=[a_node("a", cpu=4)], pods=pods))
    (remedy,) = [each for each in diagnosis.remedies if each.code == "raise-priority"]
    assert (remedy.text, remedy.node, remedy.evicted) == ("raise the priority from 5 to 11", "a", ("default/p0",))


def test_the_fewest_pods_are_deleted_and_it_is_said_where_they_would_go() -> None:
    owner = {"kind": "ReplicaSet", "name": "big", "uid": "r", "apiVersion": "apps/v1"}
    pods = [
        a_pod("small", cpu=1, node="a"),
        a_pod("big", cpu=3, node="a", labels={"app": "big"}, owner=owner),
        a_pod("b", cpu=1, node="b"),
    ]
    state = a_state(nodes=[a_node("a", cpu=4), a_node("b", cpu=4, taints=["k:NoSchedule"])], pods=pods)
    diagnosis = found(a_pod(cpu=3), state)
    (remedy,) = [each for each in diagnosis.remedies if each.code == "free-room"]
    assert (remedy.text, remedy.evicted) == ("delete pod default/big", ("default/big",))
    assert remedy.also == (
        "pod default/big is made again by its owner, and would stay pending, or take the room back if it is scheduled "
        "first",
        "to keep ReplicaSet default/big from making it again, scale it down by 1",
    )


def test_nodes_of_a_pool_and_of_a_template_can_be_added() -> None:
    nodes = [
        a_node(f"n{at}", cpu=4, labels={"karpenter.sh/nodepool": "general", HOSTNAME: f"n{at}"}) for at in range(3)
    ]
    pods = [a_pod(f"p{at}", cpu=4, node=f"n{at}") for at in range(3)]
    diagnosis = found(a_pod(cpu=4), a_state(nodes=nodes, pods=pods), templates={"huge": a_node(cpu=64)})
    added = {
        change.like: (remedy.node, change.number)
        for remedy in diagnosis.remedies
        for change in remedy.changes
        if isinstance(change, AddNodes)
    }
    assert added == {"huge": ("huge-new-1", 1), "general": ("general-new-1", 1)}


# -- several at once, never, and waiting


def test_two_causes_need_a_pair_and_neither_change_alone_is_offered() -> None:
    state = a_state(nodes=[a_node("a", cpu=4, taints=["dedicated=gpu:NoSchedule"])])
    diagnosis = found(a_pod(cpu=9), state)
    assert codes(diagnosis)[0] == "tolerate+lower-request"
    assert not {"tolerate", "lower-request"} & set(codes(diagnosis))
    assert diagnosis.never.startswith("no node is big enough: it needs 9 of cpu, the largest has 4")


def test_never_is_not_said_of_a_node_that_is_only_full() -> None:
    state = a_state(nodes=[a_node("a", cpu=4)], pods=[a_pod("p", cpu=4, node="a")])
    assert found(a_pod(cpu=4), state).never == ""


def test_terminating_pods_and_nominations_are_worth_waiting_for() -> None:
    leaving = a_state(nodes=[a_node("a", cpu=1)], pods=[a_pod("p", cpu=1, node="a", terminating=True)])
    assert [each.code for each in found(a_pod(cpu=1), leaving).waits] == ["terminating-pods"]
    kept = a_state(nodes=[a_node("a", cpu=1)], pods=[a_pod("p", cpu=1, nominated="a", priority=9)])
    assert [each.code for each in found(a_pod(cpu=1), kept).waits] == ["nomination"]


def test_a_pod_that_fits_needs_no_remedy() -> None:
    diagnosis = found(a_pod(), a_state(nodes=["a", a_node("b", taints=["k:NoSchedule"])]))
    assert diagnosis.remedies == ()
    assert [group.nodes for group in diagnosis.groups] == [("b",)]


def test_a_search_that_stops_says_so() -> None:
    nodes = [a_node(f"n{at}", taints=[f"t{at}:NoSchedule"]) for at in range(9)]
    diagnosis = found(a_pod(), a_state(nodes=nodes), most_tries=3)
    assert "the search stopped after 3 tries" in diagnosis.bounded


def test_nothing_stays_of_a_diagnosis() -> None:
    nodes = [a_node("a", cpu=4, taints=["k:NoSchedule"], labels={HOSTNAME: "a"}), a_node("b", cpu=2)]
    pods = [a_pod(f"p{at}", cpu="500m", node="b", labels={"app": "p"}) for at in range(3)]
    state = a_state(nodes=nodes, pods=[*pods, a_pod("q", cpu=1, nominated="a", priority=3)])
    before, order = contents(state, (), (), a_pod("probe")), list(state.pods)
    pod = a_pod(cpu=2, affinity=anti_affinity(HOSTNAME, app="p"))
    assert {"free-room", "tolerate"} <= {code for each in found(pod, state).remedies for code in each.code.split("+")}
    assert contents(state, (), (), a_pod("probe")) == before
    assert list(state.pods) == order


@pytest.mark.parametrize("priority", [0, 100])
def test_preemption_is_told_apart_from_remedies(priority: int) -> None:
    state = a_state(nodes=[a_node("a", cpu=1)], pods=[a_pod("p", cpu=1, node="a", priority=50)])
    diagnosis = found(a_pod(cpu=1, priority=priority), state)
    assert (diagnosis.preemption is not None) == (priority == 100)
    assert ("raise-priority" in codes(diagnosis)) == (priority == 0)


# -- what nobody may change, or has to mend first


def test_the_node_of_a_daemon_sets_pod_is_never_changed() -> None:
    name = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [name]}]}}}
    owner = {"kind": "DaemonSet", "name": "mon", "uid": "m", "apiVersion": "apps/v1"}
    state = a_state(nodes=[a_node("a", cpu=1), a_node("b", cpu=8)])
    diagnosis = found(a_pod(cpu=2, affinity=affinity, owner=owner), state)
    assert {(each.code, each.node) for each in diagnosis.remedies} == {("lower-request", "a")}
    anybodys = found(a_pod(cpu=2, affinity=affinity), state)
    assert "selector-value" in codes(anybodys)


@pytest.mark.parametrize(
    ("key", "wait"),
    [
        pytest.param("not-ready", "wait until node a is ready again, or repair it", id="not ready"),
        pytest.param("unreachable", "wait until node a is ready again, or repair it", id="unreachable"),
        pytest.param(
            "memory-pressure", "wait until node a is no longer under memory pressure, or repair it", id="pressure"
        ),
    ],
)
def test_what_a_taint_says_about_a_node_is_not_hidden_but_mended(key: str, wait: str) -> None:
    diagnosis = found(a_pod(), a_state(nodes=[a_node("a", taints=[f"node.kubernetes.io/{key}:NoSchedule"])]))
    assert not {"tolerate", "remove-taint"} & set(codes(diagnosis))
    assert [each.text for each in diagnosis.waits] == [wait]


def test_a_cordoned_node_that_is_not_ready_keeps_its_taint() -> None:
    taints = ["node.kubernetes.io/unschedulable:NoSchedule", "node.kubernetes.io/not-ready:NoSchedule"]
    diagnosis = found(a_pod(), a_state(nodes=[a_node("a", unschedulable=True, taints=taints)]))
    assert "remove-taint" not in {code for each in diagnosis.remedies for code in each.code.split("+")}


def test_a_deployment_is_named_and_only_for_pods_that_would_stay_pending() -> None:
    owner = {"kind": "ReplicaSet", "name": "web-5d", "uid": "r", "apiVersion": "apps/v1"}
    web = a_pod("web", cpu=4, node="a", labels={"pod-template-hash": "5d"}, owner=owner)
    full = a_state(nodes=[a_node("a", cpu=4)], pods=[web])
    (remedy,) = [each for each in found(a_pod(cpu=4), full).remedies if each.code == "free-room"]
    assert remedy.also[-1] == "to keep Deployment default/web from making it again, scale it down by 1"
    roomy = a_state(nodes=[a_node("a", cpu=4, labels={"disk": "ssd"}), a_node("b", cpu=4)], pods=[web])
    pod = a_pod(cpu=4, node_selector={"disk": "ssd"})
    (remedy,) = [each for each in found(pod, roomy).remedies if each.code == "free-room"]
    assert remedy.also == ("pod default/web is made again by its owner, and would go to node b",)


def test_a_pod_of_nobody_is_gone_for_good() -> None:
    state = a_state(nodes=[a_node("a", cpu=4)], pods=[a_pod("bare", cpu=4, node="a")])
    (remedy,) = [each for each in found(a_pod(cpu=4), state).remedies if each.code == "free-room"]
    assert remedy.also == ("pod default/bare is gone for good: nothing makes it again",)


@pytest.mark.parametrize("ill", ["not-ready", "unreachable", "memory-pressure"])
def test_a_node_that_is_not_well_is_a_model_for_a_new_one(ill: str) -> None:
    state = a_state(nodes=[a_node("a", cpu=4, taints=[f"node.kubernetes.io/{ill}:NoSchedule"])])
    found = diagnose(a_pod(cpu=1), state, a_profile())
    assert [each.text for each in found.remedies] == ["add a node like a"]


def test_a_tainted_node_that_is_not_well_is_no_model() -> None:
    taints = ["node.kubernetes.io/not-ready:NoSchedule", "dedicated=gpu:NoSchedule"]
    found = diagnose(a_pod(cpu=1), a_state(nodes=[a_node("a", cpu=4, taints=taints)]), a_profile())
    assert all(each.code != "add-nodes" for each in found.remedies)


# -- spellings


def affinity_to(key: str, **labels: str) -> Mapping[str, Any]:
    return {"podAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": labels}}]}}


def test_a_value_that_no_pod_has_is_corrected_in_an_affinity_term() -> None:
    nodes = [a_node(name, labels={HOSTNAME: name}) for name in ("a", "b")]
    state = a_state(nodes=nodes, pods=[a_pod("db", node="b", labels={"app": "filler"})])
    (remedy, *_) = found(a_pod(affinity=affinity_to(HOSTNAME, app="filer")), state).remedies
    assert (remedy.code, remedy.node) == ("selector-value", "b")
    assert remedy.text == "change app in the required affinity term from filer to filler"
    path = f"/spec/affinity/podAffinity/{REQUIRED}/0/labelSelector/matchLabels/app"
    assert operations(remedy) == [Operation("replace", path, "filler")]


def test_a_value_of_an_expression_is_replaced_or_added() -> None:
    node = a_node("a", labels={HOSTNAME: "a"})
    state = a_state(nodes=[node], pods=[a_pod("db", node="a", labels={"app": "filler"})])
    for values, value_path in ((["filer"], "0"), (["filer", "fillr"], "-")):
        expression = {"key": "app", "operator": "In", "values": values}
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [expression]}}
        (remedy, *_) = found(a_pod(affinity={"podAffinity": {REQUIRED: [term]}}), state).remedies
        assert remedy.code == "selector-value"
        (operation,) = operations(remedy)
        assert (operation.path.rpartition("/")[2], operation.value) == (value_path, "filler")


def test_a_label_of_the_pod_itself_is_no_mistake() -> None:
    node = a_node("a", labels={HOSTNAME: "a"})
    state = a_state(nodes=[node], pods=[a_pod("old", node="a", labels={"app": "web", "hash": "abcd1"})])
    labels = {"app": "web", "hash": "abcd2"}
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}, "namespaces": ["other"]}
    diagnosis = found(a_pod(labels=labels, affinity={"podAffinity": {REQUIRED: [term]}}), state)
    assert "selector-value" not in codes(diagnosis)


def test_a_topology_key_that_no_node_has_is_corrected() -> None:
    nodes = [a_node("a", labels={"example.com/rack": "1"})]
    state = a_state(nodes=nodes, pods=[a_pod("db", node="a", labels={"app": "db"})])
    constraint = {
        "maxSkew": 1,
        "topologyKey": "example.com/racks",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    spread = found(a_pod(topologySpreadConstraints=[constraint]), state).remedies[0]
    near = found(a_pod(affinity=affinity_to("example.com/racks", app="db")), state).remedies[0]
    assert (spread.code, near.code) == ("topology-key", "topology-key")
    text = "change the topologyKey of the spreading from example.com/racks to example.com/rack"
    assert spread.text == text
    assert [each.value for each in (*operations(spread), *operations(near))] == ["example.com/rack"] * 2


def test_no_two_constraints_get_the_same_topology_key() -> None:
    selector = {"matchLabels": {"app": "web"}}
    constraints = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        for key in ("example.com/rack", "example.com/racks")
    ]
    state = a_state(nodes=[a_node("a", labels={"example.com/rack": "1"})])
    assert codes(found(a_pod(topologySpreadConstraints=constraints), state)) == ["schedule-anyway"]


def test_a_pod_that_loses_all_its_devices_comes_last_of_those_that_evict_nothing() -> None:
    gpus = a_node("g", taints=["dedicated=gpu:NoSchedule"], resources={"example.com/gpu": 2})
    state = a_state(nodes=[a_node("a", unschedulable=True), gpus])
    resources = {"requests": {"cpu": "1", "example.com/gpu": "3"}, "limits": {"example.com/gpu": "3"}}
    diagnosis = found(a_pod(containers=[{"name": "main", "resources": resources}]), state)
    lowered = [(each.code, each.text.rpartition(" ")[2], each.node) for each in diagnosis.remedies]
    assert lowered[0] == ("tolerate+lower-request", "2", "g")
    assert lowered.index(("lower-request+uncordon", "0", "a")) > lowered.index(("lower-request+remove-taint", "2", "g"))


def test_room_that_too_many_pods_would_have_to_leave_is_said_not_to_be_searched() -> None:
    pods = [a_pod(f"small-{at}", cpu="200m", node="a", priority=10) for at in range(20)]
    diagnosis = found(a_pod(cpu=4), a_state(nodes=[a_node("a", cpu=4)], pods=pods))
    assert "free-room" not in codes(diagnosis)
    assert "no more than 16 pods were deleted from one node" in diagnosis.bounded


def test_a_feature_that_no_node_has_is_never() -> None:
    restarts = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
    pod = a_pod(containers=[{"name": "main", "restartPolicy": "Never", "restartPolicyRules": restarts}])
    feature = "RestartAllContainersOnContainerExits"
    with_it, cordoned = a_node("b", features=[feature], taints=["k=v:NoSchedule"]), a_node("c", unschedulable=True)
    assert (
        found(pod, a_state(nodes=["a", cordoned])).never
        == f"no node declares the feature {feature}, which the pod needs"
    )
    assert found(pod, a_state(nodes=["a", with_it])).never == ""


def test_nodes_without_the_company_that_a_pod_wants_are_not_searched_for_room() -> None:
    nodes = [a_node(f"n{at}", labels={HOSTNAME: f"n{at}"}) for at in range(7)]
    state = a_state(nodes=nodes, pods=[a_pod(f"on-{node.name}", node=node.name, priority=-5) for node in nodes])
    diagnosis = found(a_pod(affinity=affinity_to(HOSTNAME, app="nobody")), state)
    assert (codes(diagnosis), diagnosis.bounded) == (["drop-affinity-term"], "")
