"""What the default plugins name: for each a small cluster, a pod, and the causes in words."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.testing.builders import REQUIRED, a_node, a_pod, a_profile, a_state
from tests.diagnosis.cause_lines import node_causes, term, the_cause, whole_pod

ZONE = "zone"


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def by_name(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]}


def near(*terms: dict[str, Any], anti: bool = False) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity" if anti else "podAffinity": {REQUIRED: list(terms)}}}


def spread(key: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    one = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more}
    return {"labels": {"app": "web"}, "topologySpreadConstraints": [one]}


SSD = [a_node("a", labels={"disk": "ssd"}), a_node("b", labels={"disk": "ssd"}), a_node("c", labels={"disk": "hdd"})]
ZONES = [a_node("a", labels={ZONE: "x"}), a_node("b", labels={ZONE: "y"}), a_node("c", labels={ZONE: "y"})]


@pytest.mark.parametrize(
    ("pod", "nodes", "expected"),
    [
        pytest.param(
            {},
            [a_node("a", taints=["dedicated=gpu:NoSchedule"]), a_node("b", taints=["dedicated=gpu:NoSchedule"])],
            {"a b": ["taint: taint dedicated=gpu:NoSchedule"]},
            id="a taint of several nodes",
        ),
        pytest.param(
            {"tolerations": ["k=v:NoSchedule"]},
            [a_node("a", taints=["k=v:NoSchedule", "k=w:NoExecute", "gone:NoSchedule", "soft:PreferNoSchedule"])],
            {"a": ["taint: taint k=w:NoExecute", "taint: taint gone:NoSchedule"]},
            id="only the taints that are not tolerated",
        ),
        pytest.param({}, [a_node("a", unschedulable=True)], {"a": ["cordoned: cordoned"]}, id="cordoned"),
        pytest.param({"node": "b"}, ["a", "b"], {"a": ["node-name: the pod names node b"]}, id="the name of a node"),
        pytest.param(
            {"node": "x"}, ["a"], {"a": ["node-name: the pod names node x, which does not exist"]}, id="an unknown name"
        ),
        pytest.param(
            {"node_selector": {"disk": "sdd"}},
            SSD,
            {"a b c": ["node-selector: nodeSelector disk=sdd: nodes have ssd, hdd"]},
            id="the nearest spelling first",
        ),
        pytest.param(
            {"node_selector": {"disc": "ssd"}},
            SSD,
            {"a b c": ["node-selector: nodeSelector disc=ssd: no node has a label disc (there is disk)"]},
            id="the nearest key",
        ),
        pytest.param(
            {"node_selector": {"disk": "hdd"}},
            SSD,
            {"a b": ["node-selector: nodeSelector disk=hdd"]},
            id="a value that other nodes have",
        ),
        pytest.param(
            node_affinity(expression("disk", "In", "nvme", "ram")),
            SSD,
            {"a b c": ["node-affinity: node affinity disk in (nvme, ram): nodes have ssd, hdd"]},
            id="values that no node has",
        ),
        pytest.param(
            node_affinity(expression("disk", "NotIn", "ssd"), expression("gpu", "Exists")),
            SSD,
            {"a b": ["node-affinity: node affinity: none of (disk!=ssd), (gpu)"]},
            id="none of several terms",
        ),
        pytest.param(
            node_affinity(by_name("b")),
            SSD,
            {"a c": ["node-affinity: the pod is limited to b by its node affinity"]},
            id="one node by name",
        ),
        pytest.param(
            node_affinity(by_name("x"), by_name("b")),
            SSD,
            {"a c": ["node-affinity: the pod is limited to x, b by its node affinity (x does not exist)"]},
            id="several nodes by name",
        ),
        pytest.param(
            node_affinity({}),
            ["a"],
            {"a": ["node-affinity: node affinity: no term of it can match a node"]},
            id="an empty term",
        ),
        pytest.param(
            {"cpu": 9},
            ["a", a_node("b", cpu=2)],
            {"a b": ["too-small: no node is big enough: the pod wants 9 cpu, the largest has 4"]},
            id="too large for all",
        ),
        pytest.param(
            {"cpu": "3500m"},
            ["a", a_node("b", cpu=2), a_node("c", cpu=3)],
            {"b c": ["too-small: too small: the pod wants 3500m cpu, the node has at most 3"]},
            id="too large for some",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": 1}},
            ["a", a_node("b", resources={"nvidia.com/gpu": 1})],
            {"a": ["too-small: the node has no nvidia.com/gpu: the pod wants 1 nvidia.com/gpu"]},
            id="a resource that others have",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": 2}},
            ["a"],
            {"a": ["too-small: no node has nvidia.com/gpu: the pod wants 2 nvidia.com/gpu"]},
            id="a resource that nobody has",
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False},
            ["a", a_node("b", features=["UserNamespacesHostNetworkSupport"])],
            {
                "a": [
                    "feature: the node does not declare the feature UserNamespacesHostNetworkSupport, which the pod "
                    "needs"
                ]
            },
            id="a feature",
        ),
        pytest.param(
            near(term(ZONE, app="db")),
            ZONES,
            {"a b c": ["pod-affinity: pod affinity to app=db by zone: no pod matches"]},
            id="affinity to nobody",
        ),
        pytest.param(
            near(term("rack", app="db")),
            ZONES,
            {"a b c": ["pod-affinity: pod affinity to app=db by rack: no node has the label rack"]},
            id="affinity by a key that no node has",
        ),
        pytest.param(
            spread("rack"),
            ZONES,
            {"a b c": ["spread-label: topology spread by rack: no node has the label rack"]},
            id="spreading by a key that no node has",
        ),
        pytest.param(
            spread("zon"),
            ZONES,
            {"a b c": ["spread-label: topology spread by zon: no node has the label zon (there is zone)"]},
            id="spreading by a key that is almost there",
        ),
        pytest.param(
            spread(ZONE),
            [*ZONES, a_node("d")],
            {"d": ["spread-label: topology spread by zone: the node has no label zone"]},
            id="spreading by a key that a node lacks",
        ),
    ],
)
def test_causes_in_words(pod: dict[str, Any], nodes: Any, expected: dict[str, list[str]]) -> None:
    assert node_causes(a_pod(**pod), a_state(nodes=nodes)) == expected


@pytest.mark.parametrize(
    ("pod", "pods", "expected"),
    [
        pytest.param(
            {"ports": [80]},
            [a_pod("one", node="a", ports=[80]), a_pod("two", node="b", ports=["10.0.0.1:80"])],
            {"a b": ["port: host port 80/TCP is held by default/one, default/two"]},
            id="a port",
        ),
        pytest.param(
            {"ports": ["10.0.0.1:80", "53/UDP"]},
            [a_pod("one", node="a", ports=["10.0.0.1:80"]), a_pod("two", node="a", ports=["53/UDP", "10.0.0.2:80"])],
            {
                "a": [
                    "port: host port 80/TCP of 10.0.0.1 is held by default/one",
                    "port: host port 53/UDP is held by default/two",
                ]
            },
            id="two ports",
        ),
        pytest.param(
            {"cpu": 3},
            [a_pod("one", node="a", cpu=2), a_pod("two", node="b", cpu="2500m")],
            {"a b": ["insufficient: insufficient cpu: the pod wants 3, at most 2 of 4 is free"]},
            id="what others use",
        ),
        pytest.param(
            {"cpu": 1, "memory": "7.5Gi"},
            [a_pod("one", node="a", cpu=4, memory="1Gi"), a_pod("two", node="b", memory="700Mi")],
            {
                "a": [
                    "insufficient: insufficient cpu: the pod wants 1, at most 0 of 4 is free",
                    "insufficient: insufficient memory: the pod wants 7.5Gi, at most 7492Mi of 8Gi is free",
                ],
                "b": ["insufficient: insufficient memory: the pod wants 7.5Gi, at most 7492Mi of 8Gi is free"],
            },
            id="two resources",
        ),
        pytest.param(
            near(term(ZONE, app="db")),
            [a_pod("one", node="b", labels={"app": "db"})],
            {"a": ["pod-affinity: pod affinity to app=db by zone: pods that match are in zone y"]},
            id="affinity to another domain",
        ),
        pytest.param(
            near(term(ZONE, app="dbs")),
            [a_pod("one", node="b", labels={"app": "db"})],
            {"a b c": ["pod-affinity: pod affinity to app=dbs by zone: no pod matches (there is app=db)"]},
            id="affinity to a label that is almost there",
        ),
        pytest.param(
            near(term(ZONE, app="db"), anti=True),
            [a_pod(f"one-{at}", node="c", labels={"app": "db"}) for at in range(5)],
            {
                "b c": [
                    "pod-anti-affinity: anti-affinity with default/one-0, default/one-1, default/one-2 and 2 more "
                    "(app=db by zone)"
                ]
            },
            id="anti-affinity of the pod",
        ),
        pytest.param(
            {"labels": {"app": "web"}},
            [
                a_pod("one", node="a", **near(term(ZONE, app="web"), anti=True)),
                a_pod("two", node="a", **near(term(ZONE, app="db"), anti=True)),
            ],
            {"a": ["existing-anti-affinity: anti-affinity of default/one against the pod (app=web by zone)"]},
            id="anti-affinity of another pod",
        ),
        pytest.param(
            spread(ZONE),
            [a_pod(f"one-{at}", node="b", labels={"app": "web"}) for at in range(2)],
            {"b c": ["spread-skew: topology spread by zone, maxSkew 1, of app=web: y 2, x 0"]},
            id="spreading",
        ),
        pytest.param(
            spread(ZONE, minDomains=3),
            [a_pod("one", node="a", labels={"app": "web"}), a_pod("two", node="b", labels={"app": "web"})],
            {
                "a b c": [
                    "spread-skew: topology spread by zone, maxSkew 1, of app=web: x 1, y 1; 0 is the smallest count, "
                    "as minDomains is 3"
                ]
            },
            id="spreading over too few domains",
        ),
    ],
)
def test_causes_with_other_pods(pod: dict[str, Any], pods: Any, expected: dict[str, list[str]]) -> None:
    assert node_causes(a_pod(**pod), a_state(nodes=ZONES, pods=pods)) == expected


def test_a_node_has_all_its_causes() -> None:
    nodes = [
        a_node("a", cpu=2, unschedulable=True, taints=["k:NoSchedule"], labels={"disk": "hdd"}),
        a_node("b", labels={"disk": "ssd"}, taints=["k:NoSchedule"]),
    ]
    assert node_causes(a_pod(cpu=3, node_selector={"disk": "ssd"}), a_state(nodes=nodes)) == {
        "a": [
            "cordoned: cordoned",
            "taint: taint k:NoSchedule",
            "node-selector: nodeSelector disk=ssd",
            "too-small: too small: the pod wants 3 cpu, the node has at most 2",
        ],
        "b": ["taint: taint k:NoSchedule"],
    }


def test_too_many_pods() -> None:
    state = a_state(nodes=[a_node("a", pods=1)], pods=[a_pod("one", node="a")])
    assert node_causes(a_pod(), state) == {"a": ["too-many-pods: too many pods: 1 at most"]}


def test_names_are_few_in_the_text_and_more_in_the_details() -> None:
    pods = [a_pod(f"p{at:02}", node="a", labels={"app": "db"}) for at in range(30)]
    state = a_state(nodes=[a_node("a", labels={ZONE: "x"})], pods=pods)
    found = the_cause(a_pod(**near(term(ZONE, app="db"), anti=True)), state)
    assert found.text.startswith("anti-affinity with default/p00, default/p01, default/p02 and 27 more")
    assert found.details["count"] == 30
    names = found.details["pods"]
    assert isinstance(names, tuple) and len(names) == 20


def test_details_are_for_programs() -> None:
    found = the_cause(a_pod(node_selector={"disk": "sdd"}), a_state(nodes=SSD))
    assert dict(found.details) == {
        "key": "disk",
        "operator": "In",
        "values": ("sdd",),
        "found": ("ssd", "hdd"),
        "nearest": "ssd",
    }
    taint = the_cause(a_pod(), a_state(nodes=[a_node("a", taints=["k=v:NoExecute"])]))
    assert dict(taint.details) == {"key": "k", "value": "v", "effect": "NoExecute"}


def test_affinity_that_the_configuration_adds() -> None:
    added = node_affinity(expression("pool", "In", "blue"))["affinity"]["nodeAffinity"]
    profile = a_profile({"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]}]})
    state = a_state(nodes=[a_node("a", labels={"pool": "green"})])
    what = "added-affinity: node affinity that the scheduler's configuration adds pool=blue: nodes have green"
    assert node_causes(a_pod(), state, profile) == {"a": [what]}


# -- the pod as a whole


def test_gates_by_name() -> None:
    pod = a_pod(schedulingGates=[{"name": "storage"}, {"name": "quota"}])
    assert whole_pod(pod, a_state(nodes="a")) == ["gate: scheduling gate storage", "gate: scheduling gate quota"]


def test_a_node_affinity_that_wants_two_names_at_once() -> None:
    pod = a_pod(**node_affinity(by_name("a", "b")))
    expected = "affinity-conflict: node affinity wants a node to have several names at once: a, b"
    assert whole_pod(pod, a_state(nodes="ab")) == [expected]
