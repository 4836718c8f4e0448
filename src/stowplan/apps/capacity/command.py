"""`stowplan capacity`: reads the cluster and the manifest, counts, and prints. It changes nothing.

stowplan capacity -f pod.yaml                                   how many more fit, and what stops the next one
stowplan capacity -f web.yaml --replicas 40 --node-template large.yaml     how many nodes 40 of them need
"""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from stowplan.apps import json_output, large_reads, plugin_kinds, profile_loader
from stowplan.apps.capacity import output, question
from stowplan.apps.capacity.added_nodes import AddedNodes, DaemonSets, owner_key
from stowplan.apps.capacity.answer import ALL_WANTED, AT_MAX, NO_NODE, QUOTA, CapacityAnswer, Stop, TemplateAnswer
from stowplan.apps.capacity.question import Question
from stowplan.apps.explain import checks
from stowplan.apps.explain.admission import Admission
from stowplan.apps.explain.answers import Answer, not_asked
from stowplan.apps.explain.quotas import Quotas
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import ALWAYS, ClusterSource, FileSource, ObjectSource
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.causes import cause_groups, pod_causes
from stowplan.diagnosis.diagnosis import Diagnosis, NamedCause
from stowplan.diagnosis.rejections import rejections
from stowplan.engine.explain import Explanation
from stowplan.framework.causes import REJECTED, Cause
from stowplan.framework.decision import Decision
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.storage import StorageClass
from stowplan.simulation.capacity import Filling, NodesNeeded, daemons_that_fit, filling, nodes_needed

STOPPED = 130  # the exit code after Ctrl-C, as shells have it
TOLD_EVERY = 64  # pods


@dataclass(frozen=True)
class CapacityOptions:
    """The command line."""

    filename: str = ""
    replicas: int | None = None
    most: int = 0
    node_templates: tuple[Path, ...] = ()
    exclude_nodes: tuple[str, ...] = ()
    namespace: str = ""
    files: tuple[Path, ...] = ()
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    kubeconfig: str = ""
    context: str = ""
    verbose: bool = False
    output: str = "table"


def run(options: CapacityOptions, console: Console | None = None) -> int:
    """Count, and print the answer. Return 0 if as many pods fit as were asked for, otherwise 1."""
    try:
        with ExitStack() as closing:
            answer = answered(options, closing)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return STOPPED
    for told in output.notes(answer):
        click.echo(told, err=True)
    if options.output == "table":
        found = console or Console(highlight=False, markup=False, emoji=False)
        output.show(found, answer, verbose=options.verbose)
    else:
        json_output.echo(answer.as_json(), options.output)
    return 0 if answer.enough else 1


def answered(options: CapacityOptions, closing: ExitStack) -> CapacityAnswer:
    """Read everything, and count. Raises ConfigError for what cannot be used."""
    documents = question.read(options.filename)
    templates = checks.templates(options.node_templates, "--node-template")
    configuration, profiles = _configured(options)
    source = _source(options, closing)
    progress = closing.enter_context(
        Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    )
    reading = progress.add_task("reading the cluster", total=None)
    with large_reads.without_collection():
        objects = _read(options, source, profiles)
        excluded = _excluded(options.exclude_nodes, objects)
        snapshot = Snapshot((each for each in objects if not _is_node(each, excluded)), profiles)
    namespace = options.namespace or source.namespace
    asked, quotas = _asked(documents, snapshot, source, namespace)
    question.check_scheduler(asked.pod, profiles, options.filename)
    question.check_most(options.most, asked.wanted if options.replicas is None else options.replicas)
    daemon_sets = DaemonSets(snapshot, source, _warn) if templates else None
    progress.remove_task(reading)
    counting = Counting(snapshot, profiles[asked.pod.scheduler_name], asked, options, progress)
    found = counting.answer(quotas, templates, daemon_sets)
    pending = sum(pod.pending and not pod.terminating for pod in snapshot.pods.values())
    extenders = not_asked([asked.pod], configuration.extenders)
    return replace(found, pending=pending, not_asked=tuple(extenders), unseen=tuple(source.unseen))


def _configured(options: CapacityOptions) -> tuple[Any, dict[str, Profile]]:
    if options.config is not None:
        return profile_loader.read_configuration(options.config, options.plugin_path, options.feature_gates)
    configuration, profiles = profile_loader.defaults(options.feature_gates)
    return configuration, profiles | {profile_loader.OWN_NAME: next(iter(profiles.values()))}


def _source(options: CapacityOptions, closing: ExitStack) -> ObjectSource:
    if options.files:
        return FileSource(options.files, _warn)
    source = ClusterSource(options.kubeconfig, options.context, _warn)
    closing.callback(source.close)
    return source


def _warn(problem: str) -> None:
    click.echo(f"warning: {problem}", err=True)


def _read(options: CapacityOptions, source: ObjectSource, profiles: dict[str, Profile]) -> list[Object]:
    wanted = frozenset(ALWAYS).union(*(profile.reads for profile in profiles.values()))
    objects = source.objects(wanted, plugin_kinds.brought(profiles.values()))
    if options.files and not options.node_templates:  # templates may be all that there is
        checks.has_cluster(objects, options.files)
    if options.namespace:
        checks.namespace_exists(options.namespace, objects)
    return objects


def _excluded(given: Sequence[str], objects: Sequence[Object]) -> frozenset[str]:
    """Return the names of nodes that are left out. Raises ConfigError for one that does not exist."""
    names = {each.name for each in objects if isinstance(each, Node)}
    found = [name.strip() for each in given for name in each.split(",") if name.strip()]
    for name in found:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            remedy = f"did you mean {near[0]}?" if near else "name nodes of the cluster, with commas between them"
            raise ConfigError(f"there is no node {name}", path="--exclude-nodes", remedy=remedy)
    return frozenset(found)


def _is_node(found: Object, names: frozenset[str]) -> bool:
    return isinstance(found, Node) and found.name in names


def _asked(
    documents: list[tuple[str, dict[str, Any]]], snapshot: Snapshot, source: ObjectSource, namespace: str
) -> tuple[Question, Quotas]:
    """Return what is asked, with what comes beside it in the cluster, and the quotas that count."""
    spaces = {str((each.get("metadata") or {}).get("namespace") or namespace) for _, each in documents}
    ranges = [item for each in sorted(spaces) for item in source.limit_ranges(each)]
    quotas = Quotas((item for each in sorted(spaces) for item in source.quotas(each)), snapshot.pods.values())
    admission = Admission(snapshot.objects.values(), ranges, time.time())
    classes = [each for each in snapshot.objects.values() if isinstance(each, StorageClass)]
    found = question.asked(documents, admission, quotas, namespace, snapshot.pods, classes)
    for warning in admission.warnings:
        _warn(warning)
    for each in found.beside:
        snapshot.put(each)
    return found, quotas


class Counting:
    """One count, with its progress on a terminal."""

    def __init__(
        self, snapshot: Snapshot, profile: Profile, asked: Question, options: CapacityOptions, progress: Progress
    ) -> None:
        self._state: ClusterState = snapshot.state
        self._profile, self._asked, self._options, self._progress = profile, asked, options, progress
        self._wanted = asked.wanted if options.replicas is None else options.replicas

    def answer(self, quotas: Quotas, templates: dict[str, Node], daemon_sets: DaemonSets | None) -> CapacityAnswer:
        with filling(self._state, self._profile) as found:
            stop = self._filled(found, quotas)
            fits, by_node = len(found), found.by_node
        added = [AddedNodes(name, node, self._state.table.row_of) for name, node in templates.items()]
        needed = tuple(self._template(each, daemon_sets.pods_on(each.first) if daemon_sets else []) for each in added)
        nodes = self._state.table.live_count
        return CapacityAnswer(self._asked, fits, by_node, stop, self._wanted, needed, nodes)

    def _filled(self, found: Filling, quotas: Quotas) -> Stop:
        most = min(filter(None, (self._options.most, self._options.replicas)), default=None)
        bar = self._progress.add_task("counting pods", total=most)
        try:
            while most is None or len(found) < most:
                pod = self._next(len(found))
                refusal = quotas.admit(pod, self._asked.document)
                if refusal is not None:
                    return Stop(QUOTA, cause=refusal.cause)
                decision = found.come(pod)
                if decision.node is None:
                    return Stop(NO_NODE, self._why(decision))
                if len(found) % TOLD_EVERY == 0:
                    self._progress.update(bar, completed=len(found), description=f"{len(found):,} pods fit")
        finally:
            self._progress.remove_task(bar)
        return Stop(ALL_WANTED if most == self._options.replicas else AT_MAX)

    def _next(self, at: int) -> Pod:
        """Return the next pod. Its own claims exist then."""
        pod, claims = self._asked.series[at]
        for each in claims:
            self._state.put(each)
        return pod

    def _why(self, decision: Decision) -> Answer:
        """Return the causes for which a pod has no node."""
        pod, state, profile = decision.pod, self._state, self._profile
        found = rejections(pod, state, profile)
        own, groups = pod_causes(pod, found, state, profile), cause_groups(pod, found, state, profile)
        if decision.refused is not None and found.feasible().any():  # a plugin could not reserve what the pod needs
            texts = ", ".join(decision.refused.reasons)
            own = (*own, NamedCause(decision.refused.plugin, Cause(REJECTED, texts)))
        return Answer(Explanation(decision), Diagnosis(own, groups))

    # -- nodes that would be added

    def _template(self, added: AddedNodes, daemons: Sequence[Pod]) -> TemplateAnswer:
        """Return how many nodes like this are needed for all pods that are wanted."""
        name, wanted = added.name, 1 if self._wanted is None else self._wanted
        daemons = daemons_that_fit(self._state, self._profile, added.first, daemons)
        bar = self._progress.add_task(f"trying nodes like {name}", total=None)
        with self._state.trial():
            pods = [self._next(at) for at in range(wanted)]
            needed = nodes_needed(
                self._state, self._profile, pods, added.made,
                lambda number: self._progress.update(bar, description=f"trying {number:,} nodes like {name}"), daemons,
            )  # fmt: skip
            failed = self._failed(needed, pods, added, daemons)
        self._progress.remove_task(bar)
        return TemplateAnswer(name, needed, tuple(sorted(owner_key(each) for each in daemons)), failed)

    def _failed(
        self, needed: NodesNeeded, pods: Sequence[Pod], added: AddedNodes, daemons: Sequence[Pod]
    ) -> Answer | None:
        """Return what stops the first pod that does not fit, though a node is added."""
        if needed.number is not None:
            return None
        with filling(self._state, self._profile, added.made(1), daemons) as found:
            decisions: Iterator[Decision] = map(found.come, pods)
            lost = next((each for each in decisions if each.node is None), None)
            return None if lost is None else self._why(lost)
