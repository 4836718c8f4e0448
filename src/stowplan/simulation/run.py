"""A run: a cluster, a stream of events, a configuration of the scheduler and a seed, in virtual time.

    stream ──► cluster (API server, controllers, kubelets) ◄── Bridge ──► engine
                        └── changes ──► recorder ──► figures

Time jumps from one moment when something is due to the next: an event, a controller, a latency that is over, a step of
the engine, a sample. At each moment everybody works in turns until nothing is left to do. The engine, its plugins and
the controllers are those of `stowplan run` and `stowplan up`; the same seed gives the same run, byte by byte.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.node_order import NodeOrder
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Gone
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.simulation import gpu_use, rehearsal
from stowplan.simulation.bridge import Bridge
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.recorder import RunRecorder
from stowplan.simulation.settings import QUIET, RunSettings
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import Arrival, PolicyChange, StreamEvent

READ = frozenset(("Pod", "Node", "PriorityClass"))
Progress = Callable[["Simulation"], None]


class Simulation:
    """A run that has not ended.

    `policies`: the profiles of each configuration that the stream may change to. `brought`: the kinds that plugins
    bring. `prices`: of a node for an hour, by its name or its instance type. `node_order`: names of nodes; of equally
    good ones the first is taken, and not one that is drawn.

        run = Simulation(cluster, stream, {"default-scheduler": a_profile()}, RunSettings(seed=1))
        run.run()
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        stream: Iterable[StreamEvent],
        profiles: Mapping[str, Profile],
        settings: RunSettings = RunSettings(),  # noqa: B008  # it is frozen
        *,
        policies: Mapping[str, Mapping[str, Profile]] | None = None,
        brought: Mapping[str, ApiResource] | None = None,
        prices: Mapping[str, float] | None = None,
        problems: InputProblems | None = None,
        node_order: Iterable[str] | None = None,
    ) -> None:
        self.cluster, self.settings, self.start = cluster, settings, cluster.time
        self.problems = InputProblems() if problems is None else problems
        self._policies = dict(policies or {})
        taken = rehearsal.accepted(stream, self.problems)
        self._stream = sorted(taken, key=lambda event: event.at)  # stable: the order of the stream decides ties
        self._next, self.arrivals = 0, sum(isinstance(event, Arrival) for event in self._stream)
        self._later: list[tuple[float, int, StreamEvent]] = []  # events that follow from others
        self._bindings: list[tuple[float, int, Bind]] = []  # that take their time
        self._count = 0
        self._finished: list[str] = []  # pods without a controller that have ended
        read = READ.union(*(each.reads for found in (profiles, *self._policies.values()) for each in found.values()))
        known = {**RESOURCES, **(brought or {})}
        resources = {kind: known[kind] for kind in sorted(read)}
        draw = np.random.default_rng(settings.seed) if node_order is None else NodeOrder(node_order)
        self.engine = Scheduler(profiles, draw)
        self._bridge = Bridge(cluster.api, resources.values(), record_events=False, on_problem=self._unreadable)
        shares_gpus = gpu_use.are_shared(
            each for found in (profiles, *self._policies.values()) for each in found.values()
        )
        self.recorder = RunRecorder(self.start, prices or {}, shares_gpus)
        self._next_sample = self.start if settings.sample_seconds else None
        self.steps = 0

    def _unreadable(self, problem: str) -> None:
        self.problems.add(ConfigError(problem))

    # -- time

    @property
    def elapsed(self) -> float:
        """The virtual seconds that have passed."""
        return self.cluster.time - self.start

    @property
    def events_left(self) -> int:
        """The number of events of the stream that are still to come."""
        return len(self._stream) - self._next

    def run(self, on_moment: Progress = lambda _: None) -> None:
        """Run to the end. `on_moment` is called after each moment. Raises ConfigError for input that is refused."""
        self._check_end()
        self.problems.check()
        self._work()
        self.problems.check()
        self.recorder.began = True
        while (due := self._due()) is not None:
            self.cluster.time = max(due, self.cluster.time)
            self._happen()
            self._work()
            on_moment(self)
        if self.settings.until is not None:
            self.cluster.time = self.start + self.settings.until
        self.recorder.end(self.cluster.time if self.settings.until is not None else self.recorder.last)
        self.problems.check()
        self._bridge.close()

    def _check_end(self) -> None:
        """Raise ConfigError for a run that would never end: a CronJob always has something left to do."""
        if self.settings.until is None and self.cluster.api.store.collection("cronjobs.batch").items:
            raise ConfigError(
                "the cluster has CronJobs, so the run would never end", remedy="say when it ends: --until"
            )

    def _due(self) -> float | None:
        """When something is due next; None: the run is over."""
        moments = [self.start + self._stream[self._next].at] if self._next < len(self._stream) else []
        moments += [self._later[0][0]] if self._later else []
        moments += [self._bindings[0][0]] if self._bindings else []
        controllers = self.cluster.controllers.next_deadline()
        moments += [controllers] if controllers is not None else []
        engine = self.engine.next_deadline()
        if engine is not None and (moments or self.settings.until or engine <= self.recorder.last + QUIET):
            moments.append(engine)
        if not moments:
            return self._last_sample()
        due = min(moments) if self._next_sample is None else min(*moments, self._next_sample)
        end = None if self.settings.until is None else self.start + self.settings.until
        return due if end is None or due <= end else self._last_sample()

    def _last_sample(self) -> float | None:
        """When nothing else is due: the samples up to the end, if the run has one."""
        end = None if self.settings.until is None else self.start + self.settings.until
        return self._next_sample if end is not None and self._next_sample and self._next_sample <= end else None

    def _happen(self) -> None:
        """Let everything happen that is due now: events, bindings, samples."""
        while self._next < len(self._stream) and self.start + self._stream[self._next].at <= self.cluster.time:
            self._next += 1
            self._event(self._stream[self._next - 1])
        while self._later and self._later[0][0] <= self.cluster.time:
            self._event(heapq.heappop(self._later)[2])
        while self._bindings and self._bindings[0][0] <= self.cluster.time:
            self._carry_out(heapq.heappop(self._bindings)[2])
        if self._next_sample is not None and self._next_sample <= self.cluster.time:
            self.recorder.sample(self.cluster.time, self.engine.state)
            self._next_sample += self.settings.sample_seconds

    def _event(self, event: StreamEvent) -> None:
        try:
            if isinstance(event, PolicyChange):
                self.engine.adopt(self._policy(event), self.cluster.time)
            elif (later := self.cluster.happen(event)) is not None:
                self._count += 1
                heapq.heappush(self._later, (self.start + later.at, self._count, later))
        except ConfigError as error:
            self.problems.add(error)
            self.problems.check()

    def _policy(self, event: PolicyChange) -> Mapping[str, Profile]:
        found = self._policies.get(event.configuration)
        if found is None:
            problem = f"no configuration is named {event.configuration!r}"
            raise ConfigError(problem, file=event.file, path=event.place)
        return found

    # -- work

    def _work(self) -> None:
        """Controllers and engine work in turns until nothing is left to do at this time."""
        controllers, store = self.cluster.controllers, self.cluster.api.store
        while True:
            worked, before = controllers.settle(self.cluster.time), store.version
            self._deliver()
            while (due := self.engine.next_deadline()) is not None and due <= self.cluster.time:
                self.steps += 1
                self._perform(self.engine.step(self.cluster.time))
                self._deliver()
            while self._finished:
                self.cluster.forget(self._finished.pop())
            if not worked and store.version == before:
                return

    def _deliver(self) -> None:
        for change in self._bridge.changes():
            phase = ""
            if isinstance(change, Gone) and isinstance(change.object, Pod):
                phase = self._finished_as(change.object)
            self.recorder.changed(change, self.cluster.time, phase)
            self._perform(self.engine.handle(change, self.cluster.time))

    def _finished_as(self, pod: Pod) -> str:
        """The phase of a pod that is gone for the engine. One that finished leaves the API server, too, unless a
        controller counts it.
        """
        document = self.cluster.api.store.get("pods", pod.key)
        if document is None or document["metadata"]["uid"] != pod.uid:
            return ""
        if pod.controller() is None:
            self._finished.append(pod.key)
        return str(document.get("status", {}).get("phase", ""))

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Bind) and self.settings.bind_seconds:
                self._count += 1
                due = self.cluster.time + self.settings.bind_seconds
                heapq.heappush(self._bindings, (due, self._count, action))
            else:
                self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        result = self._bridge.perform(action, self.cluster.time)
        self._perform(self.engine.handle(result, self.cluster.time))
