"""`stowplan what-if`: reads a cluster, simulates changes of it, and says what they do to its pods. It changes nothing.

stowplan what-if --drain n1 --drain n2
stowplan what-if --add-nodes 3 like=n1 -f web.yaml --from dump.json
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import msgspec
from rich.console import Console

from stowplan.apps import json_output, large_reads, plugin_kinds, profile_loader
from stowplan.apps.dump.cluster_reader import ClusterReader
from stowplan.apps.explain.answers import Answer, Waiting
from stowplan.apps.explain.in_order import InOrder, in_queue_order
from stowplan.apps.explain.pod_explainer import PodExplainer, SearchSettings
from stowplan.apps.explain.schedulers import Schedulers
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.apps.simulate.progress import RunProgress
from stowplan.apps.what_if import changes, output
from stowplan.apps.what_if.answer import WhatIfAnswer
from stowplan.apps.what_if.simulated_source import SimulatedSource, snapshot_of
from stowplan.embedded.documents import Document
from stowplan.embedded.manifests import documents
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile
from stowplan.kube import event_loop
from stowplan.kube.resources import ApiResource
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet
from stowplan.simulation.administered_cluster import AdministeredCluster
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.pod_effects import Effects
from stowplan.simulation.stream_events import PolicyChange, StreamEvent
from stowplan.simulation.what_if import WhatIfRun, loaded, settings_for

STOPPED = 130  # the exit code after Ctrl-C, as shells have it
NEW = "--config"  # the name of the configuration that is changed to
JOINED = 1.0  # seconds after which new nodes have what runs on every node
MOST_NAMED = 5  # objects of the cluster that are left out


@dataclass(frozen=True)
class WhatIfOptions:
    """The command line."""

    drained: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    uncordoned: tuple[str, ...] = ()
    added: tuple[tuple[int, str], ...] = ()
    deleted: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    config: Path | None = None
    config_now: Path | None = None
    namespace: str = ""
    files: tuple[Path, ...] = ()
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    pool_label: str = ""
    seed: int = 0
    all_remedies: bool = False
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"

    @property
    def changes_nothing(self) -> bool:
        asked = (self.drained, self.cordoned, self.uncordoned, self.added, self.deleted, self.filenames, self.config)
        return not any(asked)


def run(options: WhatIfOptions, console: Console | None = None) -> int:
    """Simulate the changes. Return 0 if nothing gets worse, otherwise 1. `console`: where tables go."""
    if options.changes_nothing:
        remedy = "say what would be changed: --drain NODE, --add-nodes 3 like=NODE, -f FILE; --help has all"
        raise ConfigError("found no change", path="what-if", remedy=remedy)
    try:
        answer = answered(options)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return STOPPED
    for told in output.notes(answer):
        click.echo(told, err=True)
    if options.output == "table":
        found = console or Console(highlight=False, markup=False, emoji=False)
        output.show(found, answer, all_remedies=options.all_remedies)
    else:
        json_output.echo(answer.as_json(), options.output)
    return 1 if answer.worse else 0


def answered(options: WhatIfOptions) -> WhatIfAnswer:
    """Read the cluster, change it in a simulation, and compare. Raises ConfigError for what cannot be used."""
    gates = options.feature_gates
    _, profiles = _configured(options.config_now, options.plugin_path, gates)
    policies = {NEW: _configured(options.config, options.plugin_path, gates)[1]} if options.config is not None else {}
    brought = plugin_kinds.brought(each for found in (profiles, *policies.values()) for each in found.values())
    problems, unseen = InputProblems(skip=True), list[str]()
    with large_reads.without_collection():
        pairs = list(_pairs(options, brought, unseen))
        if not any(document["kind"] in ("Node", "Pod") for _, document in pairs):
            remedy = "stowplan dump -o FILE writes a cluster down"
            raise ConfigError("found no nodes and no pods", file=", ".join(map(str, options.files)), remedy=remedy)
        settings = settings_for((), 0, options.seed)
        cluster = loaded(pairs, settings, problems)
        del pairs
    for problem in problems.named[:MOST_NAMED]:
        click.echo(f"left out: {problem}", err=True)
    if problems.count > MOST_NAMED:
        click.echo(f"left out: {problems.count - MOST_NAMED:,} more objects", err=True)
    events = list(_events(options, cluster))
    settings = settings_for(events, _pods_on(options.drained, cluster), options.seed)
    what_if = WhatIfRun(cluster, events, profiles, settings, policies=policies, brought=brought, problems=problems)
    with RunProgress(what_if.simulation) as progress, large_reads.without_collection():
        what_if.run(progress.moment)  # first the scheduler and the controllers look at every object once
    effects, (before, after) = what_if.effects, what_if.fills
    judged = policies.get(NEW, profiles)
    answers = _explained(what_if, effects, judged, options) if effects.waiting else []
    blocked = tuple(sorted(cluster.blocked.values(), key=lambda each: each.pod))
    return WhatIfAnswer(effects, answers, before, after, blocked, tuple(unseen), cluster.made)


def _configured(
    file: Path | None, plugin_path: Sequence[Path], gates: FeatureGates
) -> tuple[Configuration, dict[str, Profile]]:
    if file is not None:
        return profile_loader.read_configuration(file, plugin_path, gates)
    configuration, profiles = profile_loader.defaults(gates)
    return configuration, profiles | {profile_loader.OWN_NAME: next(iter(profiles.values()))}


def _pairs(
    options: WhatIfOptions, brought: Mapping[str, ApiResource], unseen: list[str]
) -> Iterator[tuple[str, Document]]:
    """Yield the objects of the cluster, each with its file. Those of a live cluster are read as for a dump."""
    if options.files:
        yield from documents(options.files)
        return
    with Console(stderr=True).status("reading the cluster"), asyncio.Runner(loop_factory=event_loop.new) as runner:
        reader = ClusterReader(options.kubeconfig, options.context)
        found: Iterable[Document] = runner.run(reader.read(brought))
    unseen += reader.unseen
    for each in found:
        yield "the cluster", each


def _events(options: WhatIfOptions, cluster: AdministeredCluster) -> Iterator[StreamEvent]:
    """Yield all changes in the order in which they happen. Nodes come first, and the pods of DaemonSets to them."""
    changes.check_contradictions(options.uncordoned, {"--cordon": options.cordoned, "--drain": options.drained})
    if options.config is not None:
        yield PolicyChange(at=0, file="--config", configuration=NEW)
    yield from changes.added_nodes(options.added, cluster, options.pool_label)
    later = JOINED if options.added else 0.0
    yield from (msgspec.structs.replace(each, at=later) for each in _others(options, cluster))


def _others(options: WhatIfOptions, cluster: AdministeredCluster) -> Iterator[StreamEvent]:
    namespace = options.namespace or "default"
    yield from changes.cordons("--uncordon", options.uncordoned, cluster, cordoned=False)
    yield from changes.cordons("--cordon", options.cordoned, cluster, cordoned=True)
    yield from changes.applied(options.filenames, cluster, namespace)
    yield from changes.deleted(options.deleted, cluster, namespace)
    yield from changes.drains(options.drained, cluster)


def _pods_on(nodes: Iterable[str], cluster: AdministeredCluster) -> int:
    pods = cluster.api.store.collection("pods")
    return sum(len(pods.find("spec.nodeName", each) or ()) for each in nodes)


def _explained(
    what_if: WhatIfRun, effects: Effects, profiles: dict[str, Profile], options: WhatIfOptions
) -> list[Answer]:
    """Return why pods wait that did not wait before, and what would help; those that are alike have one answer."""
    engine, cluster = what_if.simulation.engine, what_if.cluster
    snapshot, source = snapshot_of(engine, profiles), SimulatedSource(cluster, options.namespace or "default")
    owners = WorkloadOwners(each for each in snapshot.objects.values() if isinstance(each, ReplicaSet))
    schedulers = Schedulers(None, snapshot.pods.values(), profiles, profile_loader.OWN_NAME, cluster.time)
    settings = SearchSettings(pool_label=options.pool_label)
    explainer = PodExplainer(snapshot, source, owners, schedulers, settings)
    order = InOrder(explainer)
    waiting: list[Pod] = in_queue_order(explainer, effects.waiting)
    order.all(waiting)
    left = {*options.drained, *options.cordoned}  # nodes
    return [_without_undoing(_as_before(each, effects), left) for each in order.answers()]


def _as_before(answer: Answer, effects: Effects) -> Answer:
    """Name pods as those in whose place they are: the names of the others are made up. How long they wait is, too."""
    explanation = answer.explanation
    decision = replace(explanation.decision, pod=_named(answer.pod, effects))
    alike = tuple(replace(each, pod=_named(each.pod, effects)) for each in answer.alike)
    return replace(answer, explanation=replace(explanation, decision=decision), alike=alike, waiting=Waiting())


def _named(pod: Pod, effects: Effects) -> Pod:
    old = effects.replaced.get(pod.uid)
    if old is None:
        return pod
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=old.before.name))


def _without_undoing(answer: Answer, left: set[str]) -> Answer:
    """Leave out remedies that put pods on nodes which are to be left by pods, or to take no more."""
    found = list(zip(answer.diagnosis.remedies, answer.commands, strict=True))
    kept = [(each, typed) for each, typed in found if not left & {each.node, *each.nodes.values()}]
    diagnosis = replace(answer.diagnosis, remedies=tuple(each for each, _ in kept))
    return replace(answer, diagnosis=diagnosis, commands=tuple(typed for _, typed in kept))
