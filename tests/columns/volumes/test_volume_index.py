"""The index of volumes, which follows changes, against a look at all volumes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.columns.volumes.matching import VolumePlan, VolumePlanner
from stowplan.objects import quantity
from stowplan.objects.changes import Gone, Put
from stowplan.objects.kinds import KINDS, convert
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from stowplan.testing.builders import a_node
from tests.hypothesis_settings import at_most
from tests.plugins.nodes.default.volumes import named, reached_from

HOSTS, SIZES = ("a", "b", "c"), ("1Gi", "2Gi", "3Gi")
WAITS: dict[str, Any] = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}


def volume(name: str, host: str, size: str, taken: bool, *, zonal: bool, modes: tuple[str, ...]) -> PersistentVolume:
    where = reached_from("zone", "z") if zonal else reached_from("host", host)
    spec = {"storageClassName": "s", "accessModes": modes, "capacity": {"storage": size}, "nodeAffinity": where}
    if taken:
        spec["claimRef"] = {"namespace": "default", "name": "somebody", "uid": "somebody"}
    found = named("PersistentVolume", name, spec=spec, status={"phase": "Bound" if taken else "Available"})
    assert isinstance(found, PersistentVolume)
    return found


def claim(name: str, size: str) -> PersistentVolumeClaim:
    spec = {"storageClassName": "s", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return convert(KINDS["PersistentVolumeClaim"], {"metadata": {"name": name, "namespace": "default"}, "spec": spec})  # type: ignore[return-value]


def by_looking_at_all(claims: list[PersistentVolumeClaim], state: ClusterState, host: str) -> list[str | None]:
    """What each claim gets on a host: the smallest free volume, of equal ones the one that was there first."""
    free = [
        each
        for each in state.store.every(PersistentVolume).values()
        if each.status.phase == "Available" and each.spec.node_affinity is not None
    ]
    found: list[str | None] = []
    for each in sorted(claims, key=lambda each: quantity.nanos(each.spec.resources.requests["storage"])):
        wanted = quantity.nanos(each.spec.resources.requests["storage"])
        here = [
            other
            for other in free
            if quantity.nanos(other.spec.capacity["storage"]) >= wanted
            and other.name not in found
            and any(
                {"host": host, "zone": "z"}.get(part.key) in part.values
                for term in other.node_terms or ()
                for part in term.labels
            )
        ]
        best = min(here, key=lambda other: quantity.nanos(other.spec.capacity["storage"]), default=None)
        found.append(None if best is None else best.name)
    return found


def planned(plan: VolumePlan, position: int) -> list[str | None]:
    numbers = [int(choice[position]) for _, choice in plan.chosen]
    return [None if number < 0 else plan.index.volume(number).name for number in numbers]


CHANGES = st.tuples(
    st.sampled_from([f"v{n}" for n in range(6)]),
    st.sampled_from(HOSTS),
    st.sampled_from(SIZES),
    st.sampled_from(("free", "free", "taken", "gone")),
    st.booleans(),
)


@at_most(300)
@given(
    changes=st.lists(st.lists(CHANGES, max_size=5), min_size=1, max_size=4),
    sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=3),
    by_zone=st.booleans(),
)
def test_every_node_gets_what_a_look_at_all_volumes_finds(changes: Any, sizes: list[str], by_zone: bool) -> None:
    state, planner = ClusterState(), VolumePlanner()
    state.put(named("StorageClass", "s", **WAITS))
    for host in HOSTS:
        state.apply(Put(a_node(host, labels={"host": host, "zone": "z"})))
    claims = [claim(f"c{number}", size) for number, size in enumerate(sizes)]

    for some in changes:
        for name, host, size, fate, zonal in some:
            found = volume(name, host, size, fate == "taken", zonal=zonal and by_zone, modes=("ReadWriteOnce",))
            state.apply(Gone(found) if fate == "gone" else Put(found))
        plan = planner.plan(claims, Cluster(state).nodes)

        for position, host in enumerate(HOSTS):
            assert planned(plan, position) == by_looking_at_all(claims, state, host)


def test_an_index_that_fell_behind_starts_again() -> None:
    """Only the latest changes are noted; whoever missed some looks at all volumes."""
    state, planner = ClusterState(), VolumePlanner()
    state.put(named("StorageClass", "s", **WAITS))
    state.apply(Put(a_node("a", labels={"host": "a"})))
    first, second = (volume(n, "a", "1Gi", False, zonal=False, modes=("ReadWriteOnce",)) for n in ("v1", "v2"))
    state.apply(Put(first))
    before = planned(planner.plan([claim("c", "1Gi")], Cluster(state).nodes), 0)

    state.apply(Gone(first))
    for _ in range(20_000):
        state.apply(Put(second))
    after = planned(planner.plan([claim("c", "1Gi")], Cluster(state).nodes), 0)

    assert (before, after) == (["v1"], ["v2"])


def test_a_volume_with_more_access_modes_is_a_candidate_too() -> None:
    state, planner = ClusterState(), VolumePlanner()
    state.put(named("StorageClass", "s", **WAITS))
    state.apply(Put(a_node("a", labels={"host": "a"})))
    state.apply(Put(volume("large", "a", "3Gi", False, zonal=False, modes=("ReadWriteOnce",))))
    state.apply(Put(volume("small", "a", "1Gi", False, zonal=False, modes=("ReadWriteOnce", "ReadOnlyMany"))))

    plan = planner.plan([claim("one", "1Gi"), claim("other", "1Gi")], Cluster(state).nodes)

    assert planned(plan, 0) == ["small", "large"]
    assert np.array_equal(plan.open, [True])


def test_a_node_with_a_new_value_joins_and_has_volumes() -> None:
    state, planner = ClusterState(), VolumePlanner()
    state.put(named("StorageClass", "s", **WAITS))
    state.apply(Put(a_node("a", labels={"host": "a"})))
    state.apply(Put(a_volume_of("v1", "a")))
    planner.plan([claim("c1", "1Gi")], Cluster(state).nodes)  # from now on the first volume of each value is kept
    state.apply(Put(a_node("new", labels={"host": "new"})))
    state.apply(Put(a_volume_of("v2", "new")))
    plan = planner.plan([claim("c2", "1Gi")], Cluster(state).nodes)
    [(_, chosen)] = plan.chosen
    assert [plan.index.volume(number).name for number in chosen.tolist()] == ["v1", "v2"]


def test_a_column_of_labels_that_was_dropped_and_made_again() -> None:
    state, planner = ClusterState(), VolumePlanner()
    state.put(named("StorageClass", "s", **WAITS))
    for name, host in (("n1", "a"), ("n2", "b")):
        state.apply(Put(a_node(name, labels={"host": host})))
    state.apply(Put(a_volume_of("on-a", "a")))
    planner.plan([claim("c", "1Gi")], Cluster(state).nodes)
    for number in range(300):
        state.table.label(f"key-{number}")  # more columns than are kept
    for name, host in (("n1", "b"), ("n2", "a")):
        state.apply(Put(a_node(name, labels={"host": host})))
    assert planner.plan([claim("c", "1Gi")], Cluster(state).nodes).open.tolist() == [False, True]


def a_volume_of(name: str, host: str) -> PersistentVolume:
    return volume(name, host, "1Gi", False, zonal=False, modes=("ReadWriteOnce",))
