"""How many more pods a cluster takes: they come one after the other, without evictions, until one finds no node.

    filling = Filling(state, profile)
    while filling.come(pod).node is not None: …       # each pod stays on its node for the next one

    nodes_needed(state, profile, pods, make_nodes)    # the fewest nodes with which all of these pods fit

A pod is decided as the scheduler decides it, and reserves what it needs as in a binding: volumes, devices. Of equally
good nodes the first is taken, so that the same question has the same answer. Nodes that are added have the pods of
DaemonSets (`daemons`) before any other pod comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import msgspec

from stowplan.columns.state import ClusterState
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.unit import Unit
from stowplan.framework.decision import Decision, Verdict
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.errors import PluginError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

MOST_NODES = 16_384  # that are tried for one workload

MakeNodes = Callable[[int], Sequence[Node]]
Told = Callable[[int], None]


class Filling:
    """`placed`: the pods that came and stayed, each with its node, in order."""

    def __init__(self, state: ClusterState, profile: Profile) -> None:
        self._state, self._profile = state, profile
        self._assumed: list[AssumedPod] = []

    def __len__(self) -> int:
        return len(self._assumed)

    @property
    def placed(self) -> list[tuple[Pod, str]]:
        return [(each.pod, each.node_name) for each in self._assumed]

    @property
    def by_node(self) -> Counter[str]:
        """How many pods each node took; the one with the most comes first."""
        found = Counter(each.node_name for each in self._assumed)
        return Counter(dict(sorted(found.items(), key=lambda each: (-each[1], each[0]))))

    def come(self, pod: Pod) -> Decision:
        """Decide about a pod. It stays on its node; without one nothing is left of it."""
        profile, state = self._profile, self._state
        decision = schedule_one(pod, state, profile, preempt=False)
        if decision.node is None:
            return decision
        unit = Unit([pod], profile.scheduler_name, state.now)
        assumed = AssumedPod(pod, decision.node, unit, profile, state, decision.skipped & profile.skip_is_final)
        refused = assumed.assume()
        if refused is not None:
            return _refused(decision, refused)
        self._assumed.append(assumed)
        return decision

    def release(self) -> None:
        """Let the plugins forget all pods, the last one first."""
        while self._assumed:
            with suppress(PluginError):  # the others must be forgotten, too
                self._assumed.pop().release()


def _refused(decision: Decision, refused: Verdict | str) -> Decision:
    """The decision about a pod that found a node, where a plugin could not reserve what it needs."""
    if isinstance(refused, str):
        return replace(decision, node=None, error=refused)
    return replace(decision, node=None, refused=refused)


@contextmanager
def filling(
    state: ClusterState, profile: Profile, nodes: Iterable[Node] = (), daemons: Sequence[Pod] = ()
) -> Iterator[Filling]:
    """A filling of the cluster, with these nodes added, and a copy of each of `daemons` on each of them. Nothing is
    left of it afterwards.
    """
    with state.trial():
        for each in nodes:
            state.apply(Put(each))
            for pod in daemons:
                state.add_pod(_copy_for(pod, each), each.name)
        found = Filling(state, profile)
        try:
            yield found
        finally:
            found.release()


def _copy_for(pod: Pod, node: Node) -> Pod:
    name = f"{pod.name}-{node.name}"
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"new/{pod.namespace}/{name}")
    found = msgspec.structs.replace(pod, metadata=metadata)
    vars(found)["shape"] = pod.shape  # it is not worked out again
    return found


def daemons_that_fit(state: ClusterState, profile: Profile, node: Node, daemons: Iterable[Pod]) -> list[Pod]:
    """Return which of these pods, each for this node, get it: those of a higher priority come first."""
    with filling(state, profile, (node,)) as found:
        ordered = sorted(daemons, key=lambda pod: -pod.priority)
        return [each for each in ordered if found.come(each).node == node.name]


class NodesNeeded(msgspec.Struct, frozen=True):
    """`number`: the fewest nodes with which all pods fit; None if no number of nodes was found to be enough.

    `placed`: how many pods fit with that number, or with the most nodes that were tried. `by_node`: where they go.
    `failed`: the decision about the first pod that did not fit, with the most nodes that were tried.
    """

    number: int | None
    placed: int
    by_node: Counter[str]
    failed: Decision | None = None


def nodes_needed(
    state: ClusterState,
    profile: Profile,
    pods: Sequence[Pod],
    make_nodes: MakeNodes,
    on_tried: Told = lambda _: None,
    daemons: Sequence[Pod] = (),
) -> NodesNeeded:
    """Return how many nodes must be added for all of these pods, one after the other.

    They are all decided again with each number that is tried: more nodes may change where the first pods go. With one
    node less than the answer they do not all fit. `on_tried` is called with each number. `daemons`: pods that are on
    each added node before.
    """

    def tried(number: int) -> NodesNeeded:
        on_tried(number)
        with filling(state, profile, make_nodes(number), daemons) as found:
            failed = next((each for each in map(found.come, pods) if each.node is None), None)
            return NodesNeeded(None if failed is not None else number, len(found), found.by_node, failed)

    few, best = 0, tried(0)
    while best.number is None:
        more = max(2 * few, 1)
        better = tried(more) if more <= MOST_NODES else best
        if better.placed <= best.placed:
            return better
        if better.number is not None:
            return _fewest(tried, few, better)
        few, best = more, better
    return best


def _fewest(tried: Callable[[int], NodesNeeded], few: int, enough: NodesNeeded) -> NodesNeeded:
    """`few` nodes are too few. Halve what is between them and those that are enough."""
    while enough.number is not None and enough.number - few > 1:
        middle = (few + enough.number) // 2
        between = tried(middle)
        if between.number is not None:
            enough = between
        else:
            few = middle
    return enough
