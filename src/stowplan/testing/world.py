"""`World`: a scheduler and a fake API server in memory, with a clock that only a test moves.

    world = World(nodes=["a", "b"])
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"}

The API server performs each action of the scheduler and answers it. A test can change that: `fail_next_binding` refuses
a binding, `answers` says how actions are answered, `extender` what HTTP extenders say, and `pause_watch` delays what
the scheduler sees. After every step the invariants are checked (`invariants.py`): no node is over-committed, no pod is
lost or bound twice, and so on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.decision import Decision
from stowplan.framework.declared_kinds import check_objects
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Action, Ask, Bind, Record
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.testing import invariants, journal
from stowplan.testing.api_server import START, FakeApiServer
from stowplan.testing.builders import a_node, a_profile
from stowplan.testing.pod_watches import PodWatches


class World:
    """A scheduler, a fake API server and a clock.

        world = World(nodes=["a", "b"])
        world.submit(a_pod("web", cpu=1))
        world.run()
        assert world.bindings == {"web": "a"}

    `answers`: a function that returns the answer to an action. An answer with a good status means that the API server
    performs the action; None means that it neither performs nor answers it.
    `extender`: a function that returns the answer of an HTTP extender.
    `on_change`, `on_assumed`: functions that are called with each change at the API server, and with the uids of the
    pods that a step gave a node.
    `actions`: every action of the scheduler. `journal`: everything that went into the scheduler (`journal.replayed`).
    `overcommitted`: names of nodes that a test knows to be over-committed.
    """

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
        """Start a scheduler with these profiles (by scheduler name; the default profile if there are none) and nodes.

        A node may be given by its name. `seed`: of the scheduler's random numbers. `checks`: False skips the
        invariants, which take most of the time of a long run. `graceful`: an evicted pod is terminating until a test
        deletes it. `kubelets`: a pod that is bound has a start time. `options` go to `Scheduler`.
        """
        self.now = 0.0
        self.actions: list[Action] = []
        self.answers: Callable[[Action], Result | None] = self.succeed
        self.extender: Callable[[Ask], Result] = lambda ask: Result(ask.id, 404, "no extender")
        self.on_change: Callable[[Put | Gone], None] = lambda _: None
        self.on_assumed: Callable[[set[str]], None] = lambda _: None
        self.overcommitted: set[str] = set()
        self.changed_nodes: set[str] = set()  # that others filled or changed while pods were being bound there
        self.profiles = dict(profiles or {"default-scheduler": a_profile()})
        self.checks = checks
        self.journal: list[bytes] = []
        self.watch_paused = False
        self.undelivered: deque[Put | Gone] = deque()  # changes that a paused watch has not delivered
        self._server = FakeApiServer(
            on_change=self._changed,
            on_bind=self._bound,
            on_read=self._read,
            graceful=graceful,
            kubelets=kubelets,
            own_types={name: kind for each in self.profiles.values() for name, kind in each.own_types.items()},
        )
        self._seed, self._options = seed, options
        self._watches = PodWatches(lambda: self.profiles.values())
        self._failures: deque[tuple[int, str]] = deque()  # of the next bindings: the HTTP status and a message
        self._inbox: deque[Put | Gone | Result] = deque()
        self.restart()
        self.submit(*(a_node(node) if isinstance(node, str) else node for node in nodes))
        self.changed_nodes.clear()

    # -- what happens to the cluster

    def submit(self, *objects: Object) -> None:
        """Create or replace objects at the API server.

        TypeError for an object that nobody can see: its type is not known, and no plugin of the profiles brings it.
        """
        self._check_types(objects)
        for each in objects:
            if isinstance(each, Pod) and each.node_name:
                self.changed_nodes.add(each.node_name)
            elif isinstance(each, Node):
                self.changed_nodes.add(each.name)
            self._server.put(each)
        self._deliver()

    def delete(self, *objects: Object) -> None:
        """Delete objects at the API server, as submitted or as they are now; one that does not exist is ignored."""
        self._check_types(objects)
        for each in objects:
            self._server.remove(each)
        self._deliver()

    def finish(self, name: str, namespace: str = "default", phase: str = "Succeeded") -> None:
        """Let a pod that is on a node end, as its kubelet reports it; `phase` may be "Failed".

        world.submit(a_pod("job"))
        world.run()
        world.finish("job")
        """
        pod = self.pod(name, namespace)
        if not pod.node_name:
            raise ValueError(f"pod {pod.key} has no node, so it does not run and cannot end; call run() first")
        self.submit(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase)))

    def run(self, limit: int = 20_000) -> None:
        """Let the scheduler step until it has nothing more to do at this moment."""
        for _ in range(limit):
            deadline = self.scheduler.next_deadline()
            if deadline is None or deadline > self.now:
                return
            self.journal.append(journal.a_line(self.now, None))
            before = set(self.scheduler.assumed_pods)
            actions = self.scheduler.step(self.now)
            self.on_assumed(set(self.scheduler.assumed_pods) - before)
            self._answer(actions)
            self._deliver()
            self._forget_changed_nodes()
            if self.checks:
                self.check()
        raise AssertionError(f"still busy after {limit} steps")

    def advance(self, seconds: float) -> None:
        """Let time pass; the scheduler runs at each moment when something becomes due."""
        end = self.now + seconds
        self.run()
        while (deadline := self.scheduler.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.run()
        self.now = end
        self.run()

    def restart(self) -> None:
        """Replace the scheduler by a new one, which knows nothing but the objects of the API server."""
        self.journal.append(msgspec.json.encode({"now": self.now, "restart": True}))
        self.undelivered.clear()
        self.scheduler = Scheduler(
            self.profiles, np.random.default_rng(self._seed), clock_began=START.timestamp(), **self._options
        )
        self._inbox.clear()
        self._inbox.extend(self._watches.listed(self.objects.values()))
        self._deliver()

    def adopt(self, profiles: Mapping[str, Profile], **options: Any) -> None:
        """Give the running scheduler another configuration."""
        self.profiles = dict(profiles)
        self.scheduler.adopt(profiles, self.now, **options)

    def allow(self, uid: str, plugin: str) -> None:
        """Let a pod go on that a plugin's permit delays."""
        self.journal.append(msgspec.json.encode({"now": self.now, "allow": [uid, plugin]}))
        self._answer(self.scheduler.allow(uid, plugin, self.now))
        self._deliver()

    def reject(self, uid: str, plugin: str, message: str) -> None:
        """Reject a pod that a plugin's permit delays."""
        self.journal.append(msgspec.json.encode({"now": self.now, "reject": [uid, plugin, message]}))
        self._answer(self.scheduler.reject(uid, plugin, message, self.now))
        self._deliver()

    # -- answers that are late or lost, and a slow watch

    def fail_next_binding(self, status: int = 500, message: str = "the test wants it", *, times: int = 1) -> None:
        """Let the API server refuse the next binding, or so many of them, with this HTTP status.

        world.fail_next_binding()
        world.submit(a_pod("web"))
        world.run()
        assert world.bindings == {}
        world.advance(60)
        assert "web" in world.bindings
        """
        self._failures.extend([(status, message)] * times)

    @staticmethod
    def succeed(action: Action) -> Result:
        """Return a good answer to any action: what `answers` is at first."""
        return Result(action.id)

    def perform(self, action: Action) -> Result:
        """Perform an action that was left unanswered, and return the answer, which the scheduler does not get."""
        if isinstance(action, Ask):
            answer = self.extender(action)
            if action.verb != "bind" or not answer.succeeded:
                return answer
        return self._server.perform(action, self.now)

    def complete(self, action: Action) -> None:
        """Perform an action that was left unanswered, and answer it."""
        self.deliver_result(self.perform(action))

    def deliver_result(self, result: Result) -> None:
        """Give the scheduler a late answer to an action, which is not performed."""
        self._inbox.append(result)
        self._deliver()

    def pause_watch(self) -> None:
        """From now on the scheduler does not see changes, until `resume_watch`. It still gets answers."""
        self.watch_paused = True

    def resume_watch(self, limit: int | None = None) -> None:
        """Let the scheduler see the changes that it missed. With a limit: only this many; the watch stays paused."""
        for _ in range(len(self.undelivered) if limit is None else min(limit, len(self.undelivered))):
            self._inbox.append(self.undelivered.popleft())
        self.watch_paused = self.watch_paused and limit is not None
        self._deliver()

    def deliver_object(self, found: Object) -> None:
        """Let the scheduler see this version of an object now, whatever the API server has and even if the watch is
        paused.
        """
        self.objects.setdefault((type(found).__name__, found.key), found)
        self._inbox.append(Put(found))
        self._deliver()

    # -- what a test looks at

    @property
    def objects(self) -> dict[tuple[str, str], Object]:
        """The API server's objects, by kind and key ("namespace/name", or the name alone)."""
        return self._server.objects

    @property
    def events(self) -> list[Record]:
        """Every event that was recorded."""
        return self._server.events

    @property
    def bound(self) -> list[str]:
        """The uids of pods, in the order in which the scheduler bound them."""
        return self._server.bound

    @property
    def bindings(self) -> dict[str, str]:
        """The node of each pod that has one, by the pod's name."""
        return {pod.name: pod.node_name for pod in self.pods() if pod.node_name}

    def pod(self, name: str, namespace: str = "default") -> Pod:
        """Return a pod as the API server has it."""
        found = self.objects["Pod", f"{namespace}/{name}"]
        assert isinstance(found, Pod)
        return found

    def pods(self) -> list[Pod]:
        """Return every pod that the API server has."""
        return [each for each in self.objects.values() if isinstance(each, Pod)]

    def explain(self, name: str) -> Decision:
        """Return the latest decision about a pod: its `message`, and per node verdicts and scores (`trail`)."""
        pod = self.pod(name)
        found = self.scheduler.decisions.latest(pod.uid)
        assert found is not None, f"{name} was never attempted"
        return replace(found, pod=pod)

    def event_notes(self, name: str, reason: str = "") -> list[str]:
        """Return the notes of a pod's events: all of them, or those of one reason."""
        return [each.note for each in self.events if each.pod.name == name and reason in ("", each.reason)]

    def check(self) -> None:
        """Check the invariants; an AssertionError if one of them does not hold."""
        invariants.check(self)

    # -- between the scheduler and the API server

    def _check_types(self, objects: Iterable[Object]) -> None:
        check_objects(objects, (enabled.plugin for profile in self.profiles.values() for enabled in profile.all))

    def _deliver(self) -> None:
        while self._inbox:
            change = self._inbox.popleft()
            self.journal.append(journal.a_line(self.now, change))
            self._answer(self.scheduler.handle(change, self.now))

    def _answer(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.actions.append(action)
            binds = isinstance(action, Bind) or (isinstance(action, Ask) and action.verb == "bind")
            fails = self._failures.popleft() if binds and self._failures else None
            answer = self.answers(action) if fails is None else Result(action.id, *fails)
            if answer is not None:
                self._inbox.append(self.perform(action) if answer.succeeded else answer)

    def _changed(self, change: Put | Gone) -> None:
        self.on_change(change)
        (self.undelivered if self.watch_paused else self._inbox).extend(self._watches.told(change))

    def _bound(self, pod: Pod, node_name: str) -> None:
        invariants.check_node(self, node_name, pod)

    def _read(self, pod: Pod) -> None:
        self._inbox.append(Put(pod))

    def _forget_changed_nodes(self) -> None:
        """The next pod that is given a node is given it as the node is now."""
        if self.changed_nodes and not self.watch_paused:
            self.changed_nodes &= {each.node_name for each in self.scheduler.assumed_pods.values()}
