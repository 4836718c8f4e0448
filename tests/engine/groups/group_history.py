"""A model of each group's history, kept from what the API server sees, without the engine; and what must hold of it.

A group is *whole* while at least its minimum is bound, *unbound* while no member is, *short* in between. A group may be
short only because of an act of others since it was last whole or unbound (`acts`). A failed binding or a restart is no
such act. A pod of a higher priority that gets a node is one, if it could evict the group's pods. If pods are evicted
for a group, the group must run (`expected`), unless others act in between or a pod of a higher priority gets a node
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from stowplan.engine.messages import PREEMPTED
from stowplan.engine.reports import PreemptionStarted, Report
from stowplan.objects.actions import Action, Evict, Record
from stowplan.objects.changes import Gone, Put
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget
from stowplan.testing.world import World
from tests.engine.groups.group_definitions import MINIMA, minimum_of, name_of

ONCE = "once-satisfied"


class Expectation(msgspec.Struct):
    """Pods were evicted so that so many more members of a group get nodes."""

    needed: int
    priority: int
    had: frozenset[str]  # uids of all pods on nodes
    acts: list[str] = []  # what others did since


class GroupHistory:
    world: World

    def __init__(self, match: str) -> None:
        self.match = match
        self.acts: dict[str, list[str]] = {name: [] for name in MINIMA}
        self.expected: dict[str, Expectation] = {}
        self.whole: set[str] = set()  # groups that were whole, and not unbound since
        self.seen_whole: set[str] = set()  # those of them that the present scheduler saw whole
        self.satisfied: set[str] = set()  # that were whole at some time since they had no pods
        self.evictions = 0
        self._preemptor = ""  # the group that preempts in the present step
        self._victims: dict[str, Pod] = {}
        self._evicted: set[str] = set()  # uids of all pods whose eviction was ever requested
        self._on_nodes: set[str] = set()  # and of all pods that ever had a node

    def watch(self, world: World) -> None:
        self.world = world
        world.on_change, world.on_assumed = self.object_changed, self.given_nodes

    # -- questions

    def members(self, name: str) -> list[Pod]:
        """The members that count: neither finished nor terminating."""
        of_it = (pod for pod in self.world.pods() if name_of(pod) == name)
        return [pod for pod in of_it if not pod.terminating and not pod.finished]

    def bound(self, name: str) -> int:
        return len(self._having(name))

    def _having(self, name: str) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.members(name) if pod.node_name)

    def minimum(self, name: str) -> int | None:
        return minimum_of(name, self.world.objects)

    def lacks(self, name: str) -> int:
        """How many members of a group must get a node together, next time; at least one."""
        minimum, bound = self.minimum(name) or 0, self.bound(name)
        if self.match == ONCE and name in self.satisfied:
            return 1
        lost = self.match == "only-waiting" and (not bound or name in self.whole)
        return max(minimum - (0 if lost else bound), 1)

    # -- what happens

    def acted(self, act: str, names: Iterable[str] = MINIMA) -> None:
        """Note an act of others that may cost these groups members or room."""
        for name in names:
            self.acts[name].append(act)
            if name in self.expected:
                self.expected[name].acts.append(act)

    def restarted(self) -> None:
        """A new scheduler knows only from the objects whether a group was ever whole."""
        self.seen_whole = {name for name in MINIMA if self._is_whole(name)}
        self.satisfied = set(self.seen_whole)

    def _is_whole(self, name: str) -> bool:
        minimum = self.minimum(name)
        return minimum is not None and self.bound(name) >= minimum

    def object_changed(self, change: Put | Gone) -> None:
        if isinstance(change.object, Pod) and change.object.node_name and change.object.uid not in self._on_nodes:
            self._on_nodes.add(change.object.uid)
            self._took_room(change.object)
        for name in [name_of(change.object)] if isinstance(change.object, Pod) else MINIMA:
            if name:
                self._update(name)

    def _took_room(self, pod: Pod) -> None:
        """Room that preemption freed for a group is not given to pods of the same or a lower priority."""
        for name, acts in self.acts.items():
            least = min((each.priority for each in self.members(name)), default=pod.priority)
            if self.bound(name) and pod.priority > least and pod.spec.preemption_policy != "Never":
                acts.append(f"{pod.name} got a node, and could have evicted others for it")
        for expected in self.expected.values():
            if pod.priority > expected.priority and pod.uid not in expected.had:
                expected.acts.append(f"{pod.name} of a higher priority got a node")

    def _update(self, name: str) -> None:
        whole, bound = self._is_whole(name), self.bound(name)
        expected = self.expected.get(name)
        if expected is not None and len(self._having(name) - expected.had) >= expected.needed:
            del self.expected[name]
        for groups in (self.whole, self.seen_whole):
            if whole:
                groups.add(name)
            elif not bound:
                groups.discard(name)
        if whole:
            self.satisfied.add(name)
        if whole or not bound:
            self.acts[name].clear()
        if not self.members(name):
            self.satisfied.discard(name)

    # -- what the engine does

    def given_nodes(self, uids: set[str]) -> None:
        """A step that gave nodes to members of a group gave them to enough, with those that had one before."""
        if self.world.watch_paused:
            return  # the engine does not know yet what the server does
        by_uid = {pod.uid: pod for pod in self.world.pods()}
        for name in {name_of(by_uid[uid]) for uid in uids if uid in by_uid} - {""}:
            minimum = (
                self.minimum(name) or 99
            )  # without a minimum none may be placed, unless the group had enough before
            having = {
                pod.uid for pod in self.members(name) if pod.node_name or pod.uid in self.world.scheduler.assumed_pods
            }
            alone = self.match == ONCE and name in self.satisfied
            assert len(having) >= minimum or alone, f"only {len(having)} of {name}, {minimum} are needed"

    def reported(self, report: Report) -> None:
        if isinstance(report, PreemptionStarted):
            name = report.pod.removeprefix("default/")
            self._preemptor, self._victims = (name if name in MINIMA else ""), {}
            if self._preemptor:
                self._expect(name)

    def _expect(self, name: str) -> None:
        priority = min(pod.priority for pod in self.members(name))
        had = frozenset(pod.uid for pod in self.world.pods() if pod.node_name)
        self.expected.setdefault(name, Expectation(self.lacks(name), priority, had))

    def asked(self, action: Action) -> None:
        """Note an action, before the API server performs it."""
        if isinstance(action, Record) and action.reason == "PodGroupTakenBack":
            self._evicted_as_group(action)
        if isinstance(action, Evict):
            self.evictions += 1
            victim = self.world.objects.get(("Pod", f"{action.pod.namespace}/{action.pod.name}"))
            again = action.pod.uid in self._evicted
            self._evicted.add(action.pod.uid)
            if self._preemptor and isinstance(victim, Pod) and PREEMPTED in action.message and not again:
                self._victims[victim.uid] = victim
                self._within_budgets()

    def _evicted_as_group(self, action: Record) -> None:
        pod = self.world.pod(action.pod.name)
        name = name_of(pod)
        assert self.minimum(name) is not None, f"{name} is evicted, and its minimum is unknown"
        assert name not in self.seen_whole, f"{name} was whole, and is evicted"
        if name in self.expected:
            self.expected[name].acts.append("evicted, since a binding of it failed")

    def _within_budgets(self) -> None:
        """Preemption for a group stays within disruption budgets."""
        spent: Counter[str] = Counter()
        for victim in self._victims.values():
            for budget in self.world.scheduler.state.store.budgets_of(victim):
                spent[budget.key] += 1
        for key, count in spent.items():
            found = self.world.objects["PodDisruptionBudget", key]
            assert isinstance(found, PodDisruptionBudget)
            assert count <= found.status.disruptions_allowed, f"{count} of {key} are evicted for {self._preemptor}"

    # -- at the end

    def check(self) -> None:
        """Check the end of a history, after enough time without failures."""
        for name, acts in self.acts.items():
            minimum, bound = self.minimum(name), self.bound(name)
            short = bound and minimum is not None and bound < minimum
            alone = self.match == ONCE and name in self.satisfied
            assert not short or acts or alone, f"{name}: {bound} of {minimum}, and no act of others"
        for name, expected in self.expected.items():
            assert expected.acts, f"pods were evicted for {name}, which does not run"
