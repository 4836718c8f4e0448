"""Random fleets and placements for Hypothesis, small enough that they interact."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from stowplan.objects.clusters import ManagedCluster
from tests.placement import reference
from tests.placement.fleets import a_binding, a_cluster, a_decision, a_placement, a_score, a_set, a_taint

NAMES = [f"c{number}" for number in range(6)]
SETS = ["default", "two", "gold"]

taints = st.builds(
    a_taint,
    st.sampled_from(["a=1:NoSelect", "a=2:NoSelect", "b:NoSelectIfNew", "c:PreferNoSelect"]),
    st.sampled_from([-20.0, -10.0, -5.0, 0.0]),
)
amounts = st.one_of(st.none(), st.sampled_from(["1", "2500m", "4", "7", "10"]))


@st.composite
def clusters(draw: Any, name: str) -> Any:
    return a_cluster(
        name,
        labels={"env": draw(st.sampled_from(["prod", "dev"])), "zone": draw(st.sampled_from(["x", "y", "z"]))},
        claims={"tier": draw(st.sampled_from(["gold", "tin"]))} if draw(st.booleans()) else {},
        taints=draw(st.lists(taints, max_size=2)) if draw(st.integers(0, 2)) == 0 else [],
        cpu=draw(amounts),
        memory=draw(amounts),
        of=draw(st.sampled_from(["default", "default", "two", ""])),
        terminating=draw(st.integers(0, 9)) == 0,
    )


@st.composite
def partly(draw: Any, old: ManagedCluster) -> ManagedCluster:
    """The same cluster with one part changed."""
    new, status = draw(clusters(old.name)), old.status
    match draw(st.sampled_from(["metadata", "taints", "claims", "amounts"])):
        case "metadata":
            return msgspec.structs.replace(old, metadata=new.metadata)
        case "taints":
            return msgspec.structs.replace(old, spec=new.spec)
        case "claims":
            changed = msgspec.structs.replace(status, cluster_claims=new.status.cluster_claims)
        case _:
            given = new.status
            changed = msgspec.structs.replace(status, allocatable=given.allocatable, capacity=given.capacity)
    return msgspec.structs.replace(old, status=changed)


@st.composite
def scores(draw: Any, cluster: str) -> Any:
    values = st.integers(-100, 100)
    given = draw(st.dictionaries(st.sampled_from(["s", "t"]), values, max_size=2))
    valid = draw(st.sampled_from([None, None, -10.0, 0.0, 10.0, 25.0]))
    return a_score(cluster, draw(st.sampled_from(["r1", "r2"])), valid, **given)


def sets() -> list[Any]:
    gold = a_set("gold", selectorType="LabelSelector", labelSelector={"matchLabels": {"env": "prod"}})
    return [a_set("default"), a_set("two"), gold]


selector = st.sampled_from(
    [
        {},
        {"matchLabels": {"env": "prod"}},
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["x"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x", "y"]}]},
    ]
)
claim_selector = st.sampled_from(
    [
        {},
        {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    ]
)
predicates = st.fixed_dictionaries(
    {
        "requiredClusterSelector": st.fixed_dictionaries(
            {
                "labelSelector": selector,
                "claimSelector": claim_selector,
                "celSelector": st.fixed_dictionaries(
                    {"celExpressions": st.lists(st.sampled_from(list(reference.EXPRESSIONS)), max_size=1)}
                ),
            }
        )
    }
)
tolerations = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b", "c"]),
        "operator": st.sampled_from(["Exists", "Exists", "Equal"]),
        "effect": st.sampled_from(["", "", "NoSelect"]),
        "tolerationSeconds": st.sampled_from([None, 5, 10, 30]),
    }
)
BUILT_IN = ["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"]


@st.composite
def configurations(draw: Any, steady: bool) -> dict[str, Any]:
    """`steady`: only what does not depend on earlier decisions or on those of other placements."""
    weight = draw(st.integers(-10, 10))
    if draw(st.booleans()):
        names = BUILT_IN[2:] if steady else BUILT_IN
        return {"scoreCoordinate": {"type": "BuiltIn", "builtIn": draw(st.sampled_from(names))}, "weight": weight}
    add_on = {"resourceName": draw(st.sampled_from(["r1", "r2"])), "scoreName": draw(st.sampled_from(["s", "t"]))}
    missing = draw(st.sampled_from(["", "zero", "min", "exclude"]))
    return {"scoreCoordinate": {"type": "AddOn", "addOn": add_on, "whenMissing": missing}, "weight": weight}


def _what(configuration: dict[str, Any]) -> str:
    """Each may be listed once."""
    given = configuration["scoreCoordinate"]
    return str(given.get("builtIn") or given["addOn"])


@st.composite
def placements(draw: Any, name: str = "test", *, steady: bool = False, generation: int = 1) -> Any:
    mode = "Exact" if steady else draw(st.sampled_from(["Additive", "Exact", ""]))
    configured = draw(st.lists(configurations(steady), min_size=int(steady), max_size=3, unique_by=_what))
    tolerated = draw(st.lists(tolerations, max_size=2))
    for each in tolerated:
        if each["operator"] == "Equal":
            each["value"] = "1"
    number = draw(st.integers(1, 3)) if steady else draw(st.one_of(st.none(), st.integers(0, 7)))
    return a_placement(
        name,
        generation=generation,
        clusterSets=draw(st.lists(st.sampled_from(SETS), max_size=2, unique=True)),
        predicates=draw(st.lists(predicates, max_size=2)),
        tolerations=tolerated,
        prioritizerPolicy={"mode": mode, "configurations": configured},
        **({} if number is None else {"numberOfClusters": number}),
    )


@st.composite
def fleets(draw: Any) -> list[Any]:
    """Clusters, scores, sets, bindings, and decisions of this placement and of other placements."""
    there = draw(st.lists(st.sampled_from(NAMES), unique=True))
    objects = [draw(clusters(name)) for name in there]
    found = [draw(scores(name)) for name in draw(st.lists(st.sampled_from(NAMES), unique=True))]
    bound = draw(st.lists(st.sampled_from(SETS), unique=True, min_size=1))
    decided = [
        a_decision(draw(st.lists(st.sampled_from([*NAMES, "gone"]), unique=True, max_size=4)), of=of)
        for of in draw(st.lists(st.sampled_from(["test", "other", "third"]), unique=True))
    ]
    return [*objects, *found, *sets(), *(a_binding(name) for name in bound), *decided]
