"""`stowplan explain`: where pods would be scheduled now, why not elsewhere, and what would help. It changes nothing.

    stowplan explain                       all pending pods, those that are alike in one row
    stowplan explain POD deploy/web …      these; of a workload the pods that wait
    stowplan explain -l app=web -A         pending pods with these labels
    stowplan explain -f FILE…              pods that do not exist yet, in order

A pod that has a node is explained as if it had none. HTTP extenders are not asked; the output says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from stowplan.apps import json_output, plugin_kinds, profile_loader
from stowplan.apps.explain import (
    answer_json,
    checks,
    in_order,
    lacking_workloads,
    output,
    pages,
    placements,
    targets,
    what_if,
)
from stowplan.apps.explain.admission import Admission, Submission
from stowplan.apps.explain.answers import Answer, not_asked
from stowplan.apps.explain.in_order import InOrder, in_queue_order
from stowplan.apps.explain.pod_explainer import PodExplainer, SearchSettings
from stowplan.apps.explain.quotas import Quotas
from stowplan.apps.explain.schedulers import Schedulers
from stowplan.apps.explain.shortages import Shortage, Shortages
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import ALWAYS, ClusterSource, FileSource, ObjectSource
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.apps.explain.texts import counted
from stowplan.apps.leader_election import KUBE_SCHEDULER
from stowplan.diagnosis.search import POOL_LABEL
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet


@dataclass(frozen=True)
class ExplainOptions:
    """The command line."""

    names: tuple[str, ...] = ()
    namespace: str = ""  # empty: that of the context, or "default"
    everywhere: bool = False
    selector: str = ""
    filenames: tuple[str, ...] = ()
    replicas: int | None = None
    files: tuple[Path, ...] = ()
    node_templates: tuple[Path, ...] = ()
    pool_label: str = POOL_LABEL
    pages: str = ""
    all_remedies: bool = False
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"


def run(options: ExplainOptions, console: Console | None = None) -> int:
    """Explain pods. Return 0 if each would get a node, 1 if one would not. `console`: where tables go."""
    _check(options)
    console = console or Console(highlight=False, markup=False, emoji=False)
    submitted = checks.manifests(options.filenames) if options.filenames else []
    only_placements = bool(submitted) and all(each.get("kind") == "Placement" for _, each in submitted)
    with ExitStack() as closing:
        source = _source(options, closing)
        if only_placements:  # on a hub, which may have neither pods nor nodes
            return _placements(options, source, submitted, console)
        configuration, profiles = profile_loader.for_questions(
            options.config, options.plugin_path, options.feature_gates
        )
        return _Run(options, configuration, profiles, source, console).answer(submitted)


def _check(options: ExplainOptions) -> None:
    if options.names and options.everywhere:
        raise ConfigError("found both POD and --all-namespaces", remedy="leave POD out, or name its namespace with -n")
    if options.names and options.selector:
        raise ConfigError("found both POD and -l", remedy="leave one of them out")
    if options.filenames and (options.names or options.selector or options.everywhere):
        raise ConfigError("found -f and pods of the cluster", remedy="explain files and pods one after the other")
    if options.replicas is not None and not options.filenames:
        raise ConfigError("found --replicas without -f", remedy="name a manifest with -f")


def _source(options: ExplainOptions, closing: ExitStack) -> ObjectSource:
    if options.files:
        return FileSource(options.files, _warn)
    source = ClusterSource(options.kubeconfig, options.context, _warn)
    closing.callback(source.close)
    return source


def _placements(
    options: ExplainOptions, source: ObjectSource, documents: list[tuple[str, dict[str, Any]]], console: Console
) -> int:
    namespace = options.namespace or source.namespace
    found = placements.explain(documents, source, namespace, options.config)
    if options.output == "table":
        placements.show(console, found)
    else:
        more = {
            "items": [],
            "placements": [each.answer for each in found],
            "extendersNotAsked": [],
            "unseen": source.unseen,
        }
        json_output.echo({"apiVersion": json_output.VERSION, "kind": "DecisionList", **more}, options.output)
    return 0 if all(each.satisfied for each in found) else 1


def _warn(problem: str) -> None:
    click.echo(f"warning: {problem}", err=True)


class _Run:
    """One run of the command."""

    def __init__(
        self,
        options: ExplainOptions,
        configuration: Configuration,
        profiles: dict[str, Profile],
        source: ObjectSource,
        console: Console,
    ) -> None:
        self._options, self._source, self._profiles, self._console = options, source, profiles, console
        self._configuration = configuration
        self._namespace = options.namespace or source.namespace
        self._lacking: list[Shortage] = []
        self._decided = False  # for any pod
        self._read()

    def _read(self) -> None:
        options, profiles = self._options, self._profiles
        brought = plugin_kinds.brought(profiles.values())
        wanted = frozenset(ALWAYS).union(*(profile.reads for profile in profiles.values()))
        with Console(stderr=True).status("reading the cluster"):
            objects = self._source.objects(wanted, brought)
        if options.files and not options.filenames:
            checks.has_cluster(objects, options.files)
        if options.namespace and not (options.filenames or options.everywhere):
            checks.namespace_exists(options.namespace, objects)
        if not options.namespace:
            self._namespace = self._source.namespace
        self._snapshot = Snapshot(objects, profiles, time.time())
        leases = self._source.leases()
        named = self._configuration.leader_election.resource_name
        own_lease = profile_loader.OWN_NAME if named in ("", KUBE_SCHEDULER) else named
        now = self._source.now()
        schedulers = Schedulers(leases, self._snapshot.pods.values(), profiles, own_lease, now)
        owners = WorkloadOwners(each for each in objects if isinstance(each, ReplicaSet))
        flags = (
            *(("--kubeconfig", options.kubeconfig) if options.kubeconfig else ()),
            *(("--context", options.context) if options.context else ()),
        )
        settings = SearchSettings(checks.templates(options.node_templates), options.pool_label, flags)
        self._explainer = PodExplainer(self._snapshot, self._source, owners, schedulers, settings)
        self._shortages = Shortages(self._source, self._admission, self._explainer.commands)
        if options.pages:
            self._explainer.queue_of = lambda pod: pages.queue_of(options.pages, pod, _warn)

    def answer(self, submitted: list[tuple[str, dict[str, Any]]]) -> int:
        if submitted:
            code = self._what_if(submitted)
        elif self._options.names:
            code = self._named()
        else:
            code = self._pending()
        if self._decided and self._options.config is None and self._options.output == "table":
            click.echo("Decided with the default configuration; --config FILE names another.", err=True)
        if self._source.unseen:
            click.echo(f"Not seen, for lack of rights: {', '.join(self._source.unseen)}.", err=True)
        return code

    # -- pods of the cluster

    def _named(self) -> int:
        wanted = [targets.parse(each) for each in self._options.names]
        found: dict[str, Pod] = {}
        for target in wanted:
            found |= {pod.key: pod for pod in self._pods_of(target)}
        answers = self._one_by_one(found.values())
        self._note_answers(answers)
        if self._options.output == "table":
            output.show_named(self._console, answers, self._lacking, all_remedies=self._options.all_remedies)
        elif len(wanted) == 1 and wanted[0].kind == "Pod":
            json_output.echo(answer_json.of(answers[0]) | self._about(answers), self._options.output)
        else:
            self._echo(answers, workloads=[each.as_json() for each in self._lacking])
        return 1 if self._lacking else _code(answers)

    def _pods_of(self, target: targets.Target) -> list[Pod]:
        """Return the pods of a target; of a workload those that wait, and all of them if none does."""
        key, pods, owners = f"{self._namespace}/{target.name}", self._snapshot.pods, self._explainer.owners
        found = [pods[key]] if target.kind == "Pod" and key in pods else []
        if target.kind != "Pod":
            found = owners.owned(pods.values(), target, self._namespace)
            lacking = self._shortages.of(target.kind, key, found)
            if lacking is not None:
                self._lacking.append(lacking)
                return [pod for pod in found if pod.pending]
        if found:
            return targets.pending_first(found)
        if target.kind != "Pod" and self._source.document(target.kind, key) is not None:
            raise ConfigError(f"{target.kind} {key} has no pods", remedy="explain its manifest with -f")
        near = targets.nearest(target, pods.values(), owners, self._namespace)
        absent = f'{target.kind.lower()} "{target.name}" not found in namespace {self._namespace}'
        raise ConfigError(absent, remedy=near or "check its name, and name its namespace with -n")

    def _pending(self) -> int:
        selector = targets.parse_selector(self._options.selector)
        pending = targets.selected(self._snapshot.pods, selector, self._namespace, everywhere=self._options.everywhere)
        others = {pod.key: pod.scheduler_name for pod in pending if self._explainer.is_foreign(pod)}
        if others:
            names = ", ".join(sorted(set(others.values())))
            told = f"{counted(len(others), 'pod')} of {names}. Name that scheduler's configuration with --config."
            click.echo(f"Judged with another profile, after the others: {told}", err=True)
        asked = {pod.key for pod in pending}
        order = in_order.judged(self._explainer, asked)
        answers = order.answers()
        self._note_answers(answers)
        self._lacking = self._lacking_workloads() if selector is None else []
        if self._options.output == "table":
            elsewhere = sum(pod.key not in asked for pod in order.placed)
            output.show_lacking(self._console, self._lacking)
            if answers or not self._lacking:
                every, none = self._options.all_remedies, self._none_pending()
                output.show_all(self._console, answers, elsewhere, none=none, all_remedies=every)
        else:
            workloads = [each.as_json() for each in self._lacking]
            self._echo(answers, otherSchedulers=others, workloads=workloads)
        return 1 if self._lacking else _code(answers)

    def _none_pending(self) -> str:
        """Return what is said where no pod that was asked for is pending."""
        everywhere, labels = self._options.everywhere, self._options.selector
        place = "" if everywhere else f" in namespace {self._namespace}"
        if not labels:
            return (
                f"No pod is pending{place}." if everywhere else f"No pod is pending{place}; -A looks in all namespaces."
            )
        others = len(targets.selected(self._snapshot.pods, None, self._namespace, everywhere=everywhere))
        rest = f"; {counted(others, 'other')} {'is' if others == 1 else 'are'}" if others else ""
        return f"No pod with {labels} is pending{place}{rest}."

    def _lacking_workloads(self) -> list[Shortage]:
        """Return the workloads that cannot create all their pods: these pods wait, too, but do not exist."""
        namespace = "" if self._options.everywhere else self._namespace
        pods, objects = self._snapshot.pods.values(), self._snapshot.objects.values()
        documents, owners = self._source.workloads(namespace), self._explainer.owners
        return list(lacking_workloads.find(objects, documents, pods, owners, self._shortages, namespace))

    # -- pods of manifests

    def _what_if(self, documents: list[tuple[str, dict[str, Any]]]) -> int:
        if any(each.get("kind") == "Placement" for _, each in documents):
            raise ConfigError("found Placements beside pods", path="-f", remedy="explain them one after the other")
        answers, groups = self._submitted(documents)
        self._note_answers(answers)
        if not answers:
            click.echo(what_if.without_pods(self._options.filenames, groups), err=self._options.output != "table")
        if self._options.output == "table" and answers:
            output.show_in_order(self._console, answers, all_remedies=self._options.all_remedies)
        elif self._options.output != "table":
            self._echo(answers)
        return 1 if groups and not answers else _code(answers)

    def _submitted(self, documents: list[tuple[str, dict[str, Any]]]) -> tuple[list[Answer], list[Submission]]:
        """Return the answers about the pods of manifests, and their groups."""
        namespaces = {str((each.get("metadata") or {}).get("namespace") or self._namespace) for _, each in documents}
        admission = self._admission(namespaces)
        found = what_if.submissions(documents, admission, self._namespace, self._options.replicas)
        for warning in admission.warnings:
            _warn(warning)
        answers = what_if.explain(self._explainer, found)
        groups = [each for each in found if each.kind in ("PodGroup", "SigsPodGroup")]
        if not answers and groups:
            answers = self._one_by_one(self._members(each.key for each in groups))
        return answers, groups

    def _admission(self, namespaces: Iterable[str]) -> Admission:
        """Return what an API server would do in these namespaces."""
        ranges = [item for each in sorted(namespaces) for item in self._source.limit_ranges(each)]
        quotas = [item for each in sorted(namespaces) for item in self._source.quotas(each)]
        pods = self._snapshot.pods.values()
        return Admission(self._snapshot.objects.values(), ranges, time.time(), Quotas(quotas, pods))

    def _members(self, groups: Iterable[str]) -> list[Pod]:
        """Return the pending pods of the cluster that are in these groups."""
        wanted = set(groups)
        return [pod for pod in self._snapshot.pods.values() if pod.pending and self._snapshot.in_group(pod) in wanted]

    # -- what all have

    def _one_by_one(self, pods: Iterable[Pod]) -> list[Answer]:
        """Return the answers about pods in the order of the queue. Pods that have a node come last."""
        order, chosen = InOrder(self._explainer), list(pods)
        order.all(in_queue_order(self._explainer, [pod for pod in chosen if pod.pending]))
        order.all(pod for pod in chosen if not pod.pending)
        return order.answers()

    def _about(self, answers: Iterable[Answer]) -> dict[str, Any]:
        return {"extendersNotAsked": self._not_asked(answers), "unseen": self._source.unseen}

    def _not_asked(self, answers: Iterable[Answer]) -> list[str]:
        return not_asked((pod for each in answers for pod in each.pods), self._configuration.extenders)

    def _note_answers(self, answers: list[Answer]) -> None:
        """Note that there are answers, and say which extenders may change them."""
        self._decided = self._decided or bool(answers)
        found = self._not_asked(answers)
        if found:
            told = f"Not asked: the extenders {', '.join(found)}. They may reject nodes or change scores."
            click.echo(told, err=True)

    def _echo(self, answers: list[Answer], **more: object) -> None:
        items = answer_json.listed(answers)
        document = {"apiVersion": json_output.VERSION, "kind": "DecisionList", "items": items}
        json_output.echo(document | self._about(answers) | more, self._options.output)


def _code(answers: list[Answer]) -> int:
    return 0 if all(answer.node is not None for answer in answers) else 1
