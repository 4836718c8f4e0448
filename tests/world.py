"""A cluster in memory with a virtual clock: the engine on one side, a pretend API server on the other.

    world = World(nodes=["a", "b"])
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"}

The server does what the engine's actions ask for and answers them, unless a test says otherwise (`answers`); HTTP
extenders say what a test lets them (`extender`). After every step all that must hold is checked (`invariants`): nothing
over-committed by us, no pod lost or bound twice, what was reserved bound or released, the columns as if built anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from stowplan.engine.pods import assumed
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import Decision
from stowplan.objects import kinds
from stowplan.objects.actions import (
    Action,
    Ask,
    Bind,
    Create,
    Delete,
    Evict,
    Nominate,
    Patch,
    Read,
    Record,
    SetCondition,
)
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodCondition
from stowplan.objects.pods import Pod
from tests import invariants, patching
from tests.builders import a_node, a_profile

Answer = Callable[[Action], Result | None]


class World:
    def __init__(
        self,
        *,
        nodes: Iterable[Node | str] = (),
        profiles: Mapping[str, Profile] | None = None,
        seed: int = 0,
        checks: bool = True,
        graceful: bool = False,
        kubelets: bool = False,
        **options: Any,
    ) -> None:
        """`checks` off: for long runs, where checking everything after every step would take longest of all.

        `graceful`: an evicted pod is terminating until a test deletes it. `kubelets`: a pod that is bound starts.
        """
        self.now = 0.0
        self.objects: dict[tuple[str, str], Object] = {}
        self.events: list[Record] = []
        self.actions: list[Action] = []
        self.answers: Answer = lambda action: Result(action.id)
        self.extender: Callable[[Ask], Result] = lambda ask: Result(ask.id, 404, "nobody there")
        self.bound: list[str] = []  # uids, each time we bound one
        self.crowded: set[str] = set()  # nodes of which a test knows that they are overfilled
        self.unsettled: set[str] = set()  # nodes that others filled or changed while pods were on their way there
        self._profiles = dict(profiles or {"default-scheduler": a_profile()})
        self._seed, self._options = seed, options
        self._inbox: deque[Put | Gone | Result] = deque()
        self._late: deque[Put | Gone] = deque()
        self.lags = False
        self._version = 0
        self.checks, self.graceful, self.kubelets = checks, graceful, kubelets
        self.placed: Callable[[set[str]], None] = lambda _: None  # told of pods that a step gave a node
        self.changed: Callable[[Put | Gone], None] = lambda _: None  # told of each change at the server, as it happens
        self.journal: list[bytes] = []  # all that went into the scheduler, one JSON line each
        self.restart()
        self.submit(*(a_node(node) if isinstance(node, str) else node for node in nodes))
        self.unsettled.clear()

    # -- what a test does

    def submit(self, *objects: Object) -> None:
        """Create or replace objects at the server."""
        for each in objects:
            if isinstance(each, Pod) and each.node_name:
                self.unsettled.add(each.node_name)
            elif isinstance(each, Node):
                self.unsettled.add(each.name)
            self.submit_later(each)
        self._deliver()

    def delete(self, *objects: Object) -> None:
        for each in objects:
            found = self.objects.pop((type(each).__name__, each.key), None)
            if found is not None:
                self._tell(Gone(found))
        self._deliver()

    def run(self, limit: int = 20_000) -> None:
        """Step while there is something to do at this very moment."""
        for _ in range(limit):
            deadline = self.scheduler.next_deadline()
            if deadline is None or deadline > self.now:
                return
            self.journal.append(recorded(self.now, None))
            before = set(self.scheduler.assumed_pods)
            actions = self.scheduler.step(self.now)
            self.placed(set(self.scheduler.assumed_pods) - before)
            self._perform(actions)
            self._deliver()
            self._settle()
            if self.checks:
                self.check()
        raise AssertionError(f"still busy after {limit} steps")

    def advance(self, seconds: float) -> None:
        """Let time pass, running at each moment when something becomes due."""
        end = self.now + seconds
        self.run()
        while (deadline := self.scheduler.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.run()
        self.now = end
        self.run()

    @staticmethod
    def fine(action: Action) -> Result:
        return Result(action.id)

    def lag(self) -> None:
        """From now on the watch is late: what the server changes is told only by `catch_up`, answers come at once."""
        self.lags = True

    def catch_up(self, most: int | None = None) -> None:
        """The watch tells what it has not told yet, or the first so many of it."""
        for _ in range(len(self._late) if most is None else min(most, len(self._late))):
            self._inbox.append(self._late.popleft())
        self.lags = self.lags and most is not None
        self._deliver()

    def submit_at_once(self, each: Object) -> None:
        """An old version of an object that the watch tells now, whatever the server has by this time."""
        self.objects.setdefault((type(each).__name__, each.key), each)
        self._inbox.append(Put(each))
        self._deliver()

    def restart(self) -> None:
        """The scheduler is killed and started anew: all it knows comes from the server's objects."""
        self.journal.append(msgspec.json.encode({"now": self.now, "restart": True}))
        self._late.clear()
        self.scheduler = Scheduler(self._profiles, np.random.default_rng(self._seed), **self._options)
        self._inbox.clear()
        for each in self.objects.values():
            self._inbox.append(Put(each))
        self._deliver()

    def answer(self, result: Result) -> None:
        """The server answers an action that it left unanswered before; what it was asked to do is not done."""
        self._inbox.append(result)
        self._deliver()

    def allow(self, uid: str, plugin: str) -> None:
        """A plugin lets a pod go on that waits for its permit."""
        self.journal.append(msgspec.json.encode({"now": self.now, "allow": [uid, plugin]}))
        self._perform(self.scheduler.allow(uid, plugin, self.now))
        self._deliver()

    def reject(self, uid: str, plugin: str, message: str) -> None:
        self.journal.append(msgspec.json.encode({"now": self.now, "reject": [uid, plugin, message]}))
        self._perform(self.scheduler.reject(uid, plugin, message, self.now))
        self._deliver()

    def adopt(self, profiles: Mapping[str, Profile], **options: Any) -> None:
        """The scheduler is given another configuration while it runs."""
        self._profiles = dict(profiles)
        self.scheduler.adopt(profiles, self.now, **options)

    def perform_late(self, action: Action) -> None:
        """The server does at last what it was asked to."""
        self._inbox.append(self._do(action))
        self._deliver()

    def perform_unheard(self, action: Action) -> None:
        """The server does what it was asked to, and its answer is lost."""
        self._do(action)

    # -- what a test looks at

    def pod(self, name: str, namespace: str = "default") -> Pod:
        found = self.objects["Pod", f"{namespace}/{name}"]
        assert isinstance(found, Pod)
        return found

    def pods(self) -> list[Pod]:
        return [each for each in self.objects.values() if isinstance(each, Pod)]

    @property
    def bindings(self) -> dict[str, str]:
        return {pod.name: pod.node_name for pod in self.pods() if pod.node_name}

    def explain(self, name: str) -> Decision:
        found = self.scheduler.decisions.latest(self.pod(name).uid)
        assert found is not None, f"{name} was never decided"
        return found

    def said(self, name: str, reason: str = "") -> list[str]:
        """The notes of a pod's events."""
        return [each.note for each in self.events if each.pod.name == name and reason in ("", each.reason)]

    # -- the server

    def _deliver(self) -> None:
        while self._inbox:
            change = self._inbox.popleft()
            self.journal.append(recorded(self.now, change))
            self._perform(self.scheduler.handle(change, self.now))

    def _perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.actions.append(action)
            answer = self.answers(action)
            if answer is None:
                continue
            if answer.succeeded:
                answer = self._do(action)
            self._inbox.append(answer)

    def _do(self, action: Action) -> Result:
        if isinstance(action, Record):
            self.events.append(action)
            return Result(action.id)
        if isinstance(action, Ask) and (action.verb != "bind" or not self.extender(action).succeeded):
            return self.extender(action)
        if isinstance(action, Patch) and (action.kind, action.key) in self.objects:
            return self._patch(action)
        if isinstance(action, Patch) and isinstance(action.body, list):  # one that begins with a test
            return Result(action.id, 404, "not found")
        if isinstance(action, Create):
            return self._create(action)
        if isinstance(action, Delete):
            return self._delete(action)
        if not hasattr(action, "pod"):
            return Result(action.id)
        pod = self.objects.get(("Pod", f"{action.pod.namespace}/{action.pod.name}"))
        if not isinstance(pod, Pod) or pod.uid != action.pod.uid:
            return Result(action.id, 404, "not found")
        return self._do_to(pod, action)

    def _do_to(self, pod: Pod, action: Action) -> Result:
        match action:
            case Bind() | Ask():
                if pod.node_name or pod.terminating:
                    return Result(action.id, 409, "already bound, or on its way out")
                self.bound.append(pod.uid)
                node_name = action.node_name if isinstance(action, Bind) else action.nodes[0]
                started = self._moment() if self.kubelets else pod.status.start_time
                made = _with_status(pod, nominated_node_name="", start_time=started)
                self.submit_later(assumed(made, node_name))
                invariants.check_node(self, node_name, pod)
            case Evict() if self.graceful:
                self.submit_later(_terminating(pod))
            case Evict():
                self.objects.pop(("Pod", pod.key))
                self._tell(Gone(pod))
            case SetCondition():
                condition = PodCondition("PodScheduled", action.status, action.reason, action.message)
                nominated = pod.nominated_node if action.nominated_node is None else action.nominated_node
                self.submit_later(_with_status(pod, conditions=(condition,), nominated_node_name=nominated))
            case Nominate():
                self.submit_later(_with_status(pod, nominated_node_name=action.node_name))
            case Read():
                self._inbox.append(Put(pod))
        return Result(action.id)

    def _patch(self, action: Patch) -> Result:
        found = patching.patched(self.objects[action.kind, action.key], action.body)
        if found is None:
            return Result(action.id, 409, "the object has been modified")
        self.submit_later(found)
        return Result(action.id)

    def _create(self, action: Create) -> Result:
        if (action.kind, action.key) in self.objects:
            return Result(action.id, 409, "already exists")
        made = kinds.convert(kinds.KINDS[action.kind], action.body)
        metadata = msgspec.structs.replace(made.metadata, uid=f"uid-{self._version}-of-{action.key}")
        self.submit_later(msgspec.structs.replace(made, metadata=metadata))
        return Result(action.id, 201)

    def _delete(self, action: Delete) -> Result:
        found = self.objects.get((action.kind, action.key))
        if found is None or (found.uid, found.metadata.resource_version) != (action.uid, action.resource_version):
            return Result(action.id, 404 if found is None else 409, "not found, or another one")
        del self.objects[action.kind, action.key]
        self._tell(Gone(found))
        return Result(action.id)

    def submit_later(self, each: Object) -> None:
        """What plugins patch gets a version of its own each time."""
        self._version += 1
        each = patching.versioned(each, self._version)
        self.objects[type(each).__name__, each.key] = each
        self._tell(Put(each))

    def _tell(self, news: Put | Gone) -> None:
        self.changed(news)
        (self._late if self.lags else self._inbox).append(news)

    def _settle(self) -> None:
        """Whoever is given a node from now on is given it as it is."""
        if self.unsettled and not self.lags:
            self.unsettled &= {placing.node_name for placing in self.scheduler.assumed_pods.values()}

    def _moment(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=int(self.now))

    def check(self) -> None:
        """All that must hold at any time."""
        invariants.check(self)


def recorded(now: float, change: Put | Gone | Result | None) -> bytes:
    """A JSON line: at this time, this change came in, or (None) a step was taken."""
    line: dict[str, Any] = {"now": now}
    if isinstance(change, Result):
        line["result"] = change
    elif change is not None:
        line["gone" if isinstance(change, Gone) else "put"] = change.object
        line["kind"] = type(change.object).__name__
    return msgspec.json.encode(line, enc_hook=str)


def replayed(journal: Iterable[bytes], profiles: Mapping[str, Profile], seed: int = 0, **options: Any) -> list[Action]:
    """What a new scheduler does, given the same changes and steps at the same times."""
    actions: list[Action] = []
    for line in map(msgspec.json.decode, journal):
        if "restart" in line:
            scheduler = Scheduler(profiles, np.random.default_rng(seed), **options)
            continue
        if "result" in line:
            actions += scheduler.handle(msgspec.convert(line["result"], Result), line["now"])
        elif "kind" in line:
            found = kinds.convert(kinds.KINDS[line["kind"]], line.get("put") or line["gone"])
            actions += scheduler.handle(Put(found) if "put" in line else Gone(found), line["now"])
        elif "allow" in line:
            actions += scheduler.allow(*line["allow"], line["now"])
        elif "reject" in line:
            actions += scheduler.reject(*line["reject"], line["now"])
        else:
            actions += scheduler.step(line["now"])
    return actions


def _terminating(pod: Pod) -> Pod:
    disrupted = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    marked = _with_status(pod, conditions=(*pod.status.conditions, disrupted))
    return msgspec.structs.replace(marked, metadata=metadata)


def _with_status(pod: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **fields))
