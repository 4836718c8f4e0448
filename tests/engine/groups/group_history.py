"""What became of each gang, written down beside the engine from the server's side; and what must be true of it.

A gang is *whole* while at least its minimum is bound, *unbound* while nobody is, *short* in between. Being short must
be somebody else's doing: an act of others since the gang was last whole or unbound, by name (`acts`). Neither a failed
binding nor a restart is one; that somebody who matters more gets a node is, if it could evict the gang's pods as well.
Whoever evicts for a gang owes that it runs (`owed`), unless others act in between, or somebody who matters more than
the gang gets a node meanwhile.
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
from tests.engine.groups.group_spellings import MINIMA, minimum_of, name_of
from tests.world import World

ONCE = "once-satisfied"


class Debt(msgspec.Struct):
    """Pods were evicted so that so many members of a gang get nodes, besides those that had one."""

    needed: int
    priority: int
    had: frozenset[str]  # uids of all pods on nodes
    acts: list[str] = []  # what others did since


class Chronicle:
    world: World

    def __init__(self, match: str) -> None:
        self.match = match
        self.acts: dict[str, list[str]] = {name: [] for name in MINIMA}
        self.owed: dict[str, Debt] = {}
        self.whole: set[str] = set()  # gangs that were whole, and not unbound since
        self.seen_whole: set[str] = set()  # those of them that the present scheduler saw so
        self.satisfied: set[str] = set()  # that were whole at some time since they had no pods
        self.evictions = 0
        self._clears = ""  # the gang that the present step makes room for
        self._victims: dict[str, Pod] = {}
        self._told: set[str] = set()  # uids of all that were ever told to go
        self._on_nodes: set[str] = set()  # and of all that ever had a node

    def watch(self, world: World) -> None:
        self.world = world
        world.changed, world.placed = self.saw, self.given_nodes

    # -- how gangs stand

    def members(self, name: str) -> list[Pod]:
        """Those that count: neither finished nor on their way out."""
        of_it = (pod for pod in self.world.pods() if name_of(pod) == name)
        return [pod for pod in of_it if not pod.terminating and not pod.finished]

    def bound(self, name: str) -> int:
        return len(self._having(name))

    def _having(self, name: str) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.members(name) if pod.node_name)

    def minimum(self, name: str) -> int | None:
        return minimum_of(name, self.world.objects)

    def lacks(self, name: str) -> int:
        """How many of a gang must get a node together, next time; at least one."""
        minimum, bound = self.minimum(name) or 0, self.bound(name)
        if self.match == ONCE and name in self.satisfied:
            return 1
        lost = self.match == "only-waiting" and (not bound or name in self.whole)
        return max(minimum - (0 if lost else bound), 1)

    # -- what happens

    def acted(self, act: str, names: Iterable[str] = MINIMA) -> None:
        """Others are about to do something that may cost these gangs members or room."""
        for name in names:
            self.acts[name].append(act)
            if name in self.owed:
                self.owed[name].acts.append(act)

    def restarted(self) -> None:
        """Whether a gang was ever whole, a new scheduler can only tell from what it finds."""
        self.seen_whole = {name for name in MINIMA if self._is_whole(name)}
        self.satisfied = set(self.seen_whole)

    def _is_whole(self, name: str) -> bool:
        minimum = self.minimum(name)
        return minimum is not None and self.bound(name) >= minimum

    def saw(self, news: Put | Gone) -> None:
        if isinstance(news.object, Pod) and news.object.node_name and news.object.uid not in self._on_nodes:
            self._on_nodes.add(news.object.uid)
            self._took_room(news.object)
        for name in [name_of(news.object)] if isinstance(news.object, Pod) else MINIMA:
            if name:
                self._weigh(name)

    def _took_room(self, pod: Pod) -> None:
        """What was cleared for a gang is kept for it against all that matter no more than it."""
        for name, acts in self.acts.items():
            least = min((each.priority for each in self.members(name)), default=pod.priority)
            if self.bound(name) and pod.priority > least and pod.spec.preemption_policy != "Never":
                acts.append(f"{pod.name} got a node, and could have evicted others for it")
        for debt in self.owed.values():
            if pod.priority > debt.priority and pod.uid not in debt.had:
                debt.acts.append(f"{pod.name} got a node, which matters more")

    def _weigh(self, name: str) -> None:
        whole, bound = self._is_whole(name), self.bound(name)
        debt = self.owed.get(name)
        if debt is not None and len(self._having(name) - debt.had) >= debt.needed:
            del self.owed[name]
        for book in (self.whole, self.seen_whole):
            if whole:
                book.add(name)
            elif not bound:
                book.discard(name)
        if whole:
            self.satisfied.add(name)
        if whole or not bound:
            self.acts[name].clear()
        if not self.members(name):
            self.satisfied.discard(name)

    # -- what the engine does

    def given_nodes(self, uids: set[str]) -> None:
        """A step that gave nodes to members of a gang gave them to enough, with those that had one before."""
        if self.world.lags:
            return  # the engine does not know yet what the server does
        by_uid = {pod.uid: pod for pod in self.world.pods()}
        for name in {name_of(by_uid[uid]) for uid in uids if uid in by_uid} - {""}:
            minimum = self.minimum(name) or 99  # nobody says it: then none may go, or a gang that had enough goes on
            having = {
                pod.uid for pod in self.members(name) if pod.node_name or pod.uid in self.world.scheduler.assumed_pods
            }
            alone = self.match == ONCE and name in self.satisfied
            assert len(having) >= minimum or alone, f"only {len(having)} of {name}, {minimum} are needed"

    def reported(self, report: Report) -> None:
        if isinstance(report, PreemptionStarted):
            name = report.pod.removeprefix("default/")
            self._clears, self._victims = (name if name in MINIMA else ""), {}
            if self._clears:
                self._owes(name)

    def _owes(self, name: str) -> None:
        priority = min(pod.priority for pod in self.members(name))
        had = frozenset(pod.uid for pod in self.world.pods() if pod.node_name)
        self.owed.setdefault(name, Debt(self.lacks(name), priority, had))

    def asked(self, action: Action) -> None:
        """The server is asked for something, and has not done it yet."""
        if isinstance(action, Record) and action.reason == "PodGroupTakenBack":
            self._taken_back(action)
        if isinstance(action, Evict):
            self.evictions += 1
            victim = self.world.objects.get(("Pod", f"{action.pod.namespace}/{action.pod.name}"))
            again = action.pod.uid in self._told
            self._told.add(action.pod.uid)
            if self._clears and isinstance(victim, Pod) and action.message.endswith(PREEMPTED) and not again:
                self._victims[victim.uid] = victim
                self._within_budgets()

    def _taken_back(self, action: Record) -> None:
        pod = self.world.pod(action.pod.name)
        name = name_of(pod)
        assert self.minimum(name) is not None, f"{name} is taken back, and nobody says how many it needs"
        assert name not in self.seen_whole, f"{name} was whole, and is taken back"
        if name in self.owed:
            self.owed[name].acts.append("taken back, since a binding of it failed")

    def _within_budgets(self) -> None:
        """Room for a gang never costs more than budgets allow."""
        spent: Counter[str] = Counter()
        for victim in self._victims.values():
            for budget in self.world.scheduler.state.store.budgets_of(victim):
                spent[budget.key] += 1
        for key, count in spent.items():
            budget = self.world.objects["PodDisruptionBudget", key]
            assert isinstance(budget, PodDisruptionBudget)
            assert count <= budget.status.disruptions_allowed, f"{count} of {key} go for {self._clears}"

    # -- in the end

    def check(self) -> None:
        """Nothing fails any more, and everybody had time."""
        for name, acts in self.acts.items():
            minimum, bound = self.minimum(name), self.bound(name)
            short = bound and minimum is not None and bound < minimum
            alone = self.match == ONCE and name in self.satisfied
            assert not short or acts or alone, f"{name}: {bound} of {minimum} by our own doing"
        for name, debt in self.owed.items():
            assert debt.acts, f"pods were evicted for {name}, which does not run"
