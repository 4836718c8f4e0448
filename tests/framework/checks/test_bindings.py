"""What `check_plugin` finds about state: reservations that are not undone, that mix, and methods that act on them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from stowplan.framework.decision import SKIP, Reject, RejectPod
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.meta import ApiValue, Object, ObjectMeta
from stowplan.testing.builders import a_pod

UNDO = "unreserve does not undo reserve: score gives another answer: node "
OVERLAP = "unreserve of one pod changes what another one reserved: score gives another answer: node "


class Remembers:
    """Avoids the nodes of pods that are reserved or bound; it keeps the contract."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}  # by the pod's uid

    def score(self, pod: Any, nodes: Any) -> Any:
        taken = self.memory(nodes.cluster)
        return np.array([0 if name in taken else 100 for name in nodes.names], np.int64)

    def memory(self, cluster: Any) -> set[str]:
        return set(self.taken.values())

    def reserve(self, pod: Any, node_name: str, cluster: Any) -> Any:
        self.taken[pod.uid] = node_name

    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        self.taken.pop(pod.uid, None)


class ByPreFilter(Remembers):
    """What it remembers comes to `score` by a note of `pre_filter`."""

    def pre_filter(self, pod: Any, cluster: Any) -> Any:
        cluster.notes["ByPreFilter"] = set(self.taken.values())
        return SKIP if pod.labels else None

    def memory(self, cluster: Any) -> set[str]:
        return cluster.notes["ByPreFilter"]  # type: ignore[no-any-return]


class Binds(Remembers):
    """Once a pod is bound, there is nothing to undo: `unreserve` after `post_bind` would be an error of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: set[str] = set()

    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        assert pod.uid not in self.bound
        super().unreserve(pod, node_name, cluster)

    def post_bind(self, pod: Any, node_name: str, cluster: Any) -> Any:
        self.bound.add(pod.uid)
        return ()


class HasALock(Remembers):
    """It cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class TakesTwo(Remembers):
    """Rejects a pod in `reserve`; what is rejected is undone."""

    def reserve(self, pod: Any, node_name: str, cluster: Any) -> Any:
        super().reserve(pod, node_name, cluster)
        return RejectPod(("two are enough",)) if len(self.taken) > 1 else None


class OnlyForOthers(Remembers):
    """Acts on pods of one kind because of pods of another kind."""

    def score(self, pod: Any, nodes: Any) -> Any:
        return super().score(pod, nodes) if pod.labels.get("role") == "web" else None

    def reserve(self, pod: Any, node_name: str, cluster: Any) -> Any:
        if pod.labels.get("role") == "db":
            super().reserve(pod, node_name, cluster)


class Gates(Remembers):
    """One of the pods at a time."""

    def pre_enqueue(self, pod: Any, cluster: Any) -> Any:
        return RejectPod(("one at a time",)) if self.taken else None


@pytest.mark.parametrize("plugin", [Remembers, ByPreFilter, Binds, HasALock, TakesTwo, Gates])
def test_state_that_keeps_the_contract(plugin: Any) -> None:
    assert check_plugin(plugin()) == []


def test_pods_of_two_kinds() -> None:
    pods = [a_pod("web", labels={"role": "web"}), a_pod("db", labels={"role": "db"})]
    assert check_plugin(OnlyForOthers(), pods=pods) == []


class Keeps(Remembers):
    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        pass


class KeepsByPreFilter(ByPreFilter):
    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        pass


class KeepsFilter(KeepsByPreFilter):
    """Its pre-filter says what its filter does with the memory."""

    score = None  # type: ignore[assignment]

    def pre_filter(self, pod: Any, cluster: Any) -> Any:
        cluster.notes["ByPreFilter"] = set(self.taken.values())

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.array([name in self.memory(nodes.cluster) for name in nodes.names], np.bool_), "taken")


class RestoresTheOneBefore(Remembers):
    """The flaw of a plugin that notes what was there before: bindings overlap."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.before = "", dict[str, str]()

    def memory(self, cluster: Any) -> set[str]:
        return {self.last}

    def reserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        self.before[pod.uid], self.last = self.last, node_name

    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        self.last = self.before.pop(pod.uid, self.last)


class ForgetsAll(Remembers):
    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        self.taken.clear()


class LosesCount(Remembers):
    """Its `post_bind` looks for the reservation in the wrong place."""

    def post_bind(self, pod: Any, node_name: str, cluster: Any) -> Any:
        del self.taken[node_name]
        return ()


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(Keeps, UNDO, id="unreserve does nothing"),
        pytest.param(KeepsByPreFilter, UNDO, id="with a pre-filter"),
        pytest.param(KeepsFilter, UNDO.replace("score", "filter"), id="a filter with a pre-filter"),
        pytest.param(RestoresTheOneBefore, OVERLAP, id="it restores what was before"),
        pytest.param(ForgetsAll, OVERLAP, id="it forgets others, too"),
        pytest.param(LosesCount, "post_bind fails: KeyError", id="post_bind fails"),
    ],
)
def test_state_that_breaks_the_contract(plugin: Any, problem: str) -> None:
    found = check_plugin(plugin())
    assert [each for each in found if each.startswith(f"{plugin.__name__}: {problem}")], found


@pytest.mark.parametrize("plugin", [RestoresTheOneBefore, ForgetsAll])
def test_one_reservation_alone_is_undone(plugin: Any) -> None:
    assert not [each for each in check_plugin(plugin()) if "does not undo" in each]


class FollowsRowsOfReserved(Remembers):
    """Its fault shows only if something is reserved."""

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.arange(len(nodes), dtype=np.int64) if self.taken else None


def test_a_problem_that_only_reservations_show() -> None:
    found = next(each for each in check_plugin(FollowsRowsOfReserved()) if "order of rows" in each)
    assert ", while other pods are reserved (pod " in found


# -- words of objects that are given


class PoolSpec(ApiValue, frozen=True):
    product: str = ""
    seats: int = 0


class SeatPool(Object, frozen=True):
    spec: PoolSpec = PoolSpec()


class ByName:
    """Acts on pods whose label names an object."""

    reads = (CustomResource(SeatPool, group="example.com", version="v1", plural="seatpools"),)

    def filter(self, pod: Any, nodes: Any) -> Any:
        pool = nodes.cluster.get(SeatPool, f"{pod.namespace}/{pod.labels.get('license', '')}")
        if pool is not None:
            yield Reject(np.ones(len(nodes), np.bool_), "no seats")


class ByProduct(ByName):
    """Acts on pods whose label has a text of an object's spec."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        if pod.labels.get("license") in [pool.spec.product for pool in nodes.cluster.every(SeatPool).values()]:
            yield Reject(np.ones(len(nodes), np.bool_), "no seats")


class ByLabel(ByName):
    """Acts on pods that have a label of an object."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        if any(pod.labels.items() & pool.labels.items() for pool in nodes.cluster.every(SeatPool).values()):
            yield Reject(np.ones(len(nodes), np.bool_), "no seats")


@pytest.mark.parametrize("plugin", [ByName, ByProduct, ByLabel])
def test_pods_have_the_words_of_given_objects(plugin: Any) -> None:
    metadata = ObjectMeta(name="cad-seats", namespace="drawing", labels={"floor": "third"})
    pool = SeatPool(metadata=metadata, spec=PoolSpec(product="matrix", seats=3))
    assert check_plugin(plugin(), objects=[pool]) == []
    assert "never rejected a node" in check_plugin(plugin())[0]
