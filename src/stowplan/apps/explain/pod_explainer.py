"""Answers about pods of a snapshot. Each costs one search; `in_order` asks once about pods that are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from stowplan.apps.explain import answers
from stowplan.apps.explain.answers import Answer, Waiting
from stowplan.apps.explain.kubectl_commands import Documents, Manifest, PodOrigin, RemedyCommands
from stowplan.apps.explain.schedulers import DEFAULT, SERVES, Schedulers, Serving
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import ObjectSource
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.remedy import ObjectChange, Remedy
from stowplan.diagnosis.search import POOL_LABEL
from stowplan.engine.explain import Explanation
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

MOST_DIAGNOSED = 50  # kinds of pods for which remedies are searched in one run
MOST_ASKED = 10  # kinds of pods about which events are read one by one


@dataclass(frozen=True)
class SearchSettings:
    """What the command line says of the search. `flags`: of kubectl, for the commands that are printed."""

    templates: Mapping[str, Node] = field(default_factory=dict)
    pool_label: str = POOL_LABEL
    flags: tuple[str, ...] = ()


class PodExplainer:
    def __init__(
        self,
        snapshot: Snapshot,
        source: ObjectSource,
        owners: WorkloadOwners,
        schedulers: Schedulers,
        settings: SearchSettings,
    ) -> None:
        self.snapshot, self.source, self.owners, self.schedulers = snapshot, source, owners, schedulers
        self._settings = settings
        self._searches = self._asked = 0
        self.manifests: dict[tuple[str, str], Manifest] = {}  # by kind and key: what does not exist yet
        self.rehearsed: set[str] = set()  # the keys of pods that are on nodes only in this run
        self.queue_of: Callable[[Pod], Mapping[str, Any] | None] = lambda _: None

    def kind(self, pod: Pod) -> Hashable:
        """Return what pods must share to have the same answer: not only their template, but also the owner."""
        if not pod.pending or pod.nominated_node or self.snapshot.in_group(pod):
            return pod.uid
        owner = self.owners.of(pod)
        labels = frozenset(pod.labels.items()) if owner is None else None
        return pod.namespace, owner, labels, msgspec.json.encode(pod.spec, enc_hook=str)

    def explanation(self, pod: Pod) -> Explanation | None:
        """Return where a pod would go now; None if nobody serves it."""
        serving = self.schedulers.of(pod.scheduler_name)
        if serving.absent or pod.scheduler_name not in self.snapshot.profiles:
            return None
        return self.snapshot.answer(pod)

    def answer(self, pod: Pod) -> Answer:
        serving = self.schedulers.of(pod.scheduler_name)
        if serving.absent or pod.scheduler_name not in self.snapshot.profiles:
            explanation, diagnosis = self._elsewhere(pod, serving)
        else:
            explanation = self.snapshot.answer(pod)
            diagnosis = self._diagnosed(pod) if explanation.node is None else Diagnosis()
        found = Answer(
            explanation,
            diagnosis,
            serving,
            self._waiting(pod),
            self.owners.of(pod),
            bound_to=pod.node_name,
            now=self.source.now(),
        )
        return self.with_commands(found)

    def with_commands(self, answer: Answer) -> Answer:
        """Return the answer with the commands of its remedies."""
        commands = tuple(self.commands(each.changes) for each in answer.diagnosis.remedies)
        origin = self._origin(answer.pod.key)
        file = "" if origin is None or origin.manifest is None else origin.manifest.file
        return replace(answer, commands=commands, file=file)

    def commands(self, changes: Sequence[ObjectChange]) -> tuple[str, ...]:
        return RemedyCommands(self._documents, self._origin, self._settings.flags).of(changes)

    def _origin(self, key: str) -> PodOrigin | None:
        """Return where a pod comes from; None for one that is not known."""
        pod = self.snapshot.pods.get(key)
        if pod is None:
            return None
        owner = self.owners.of(pod)
        return PodOrigin(owner, self.manifests.get(("Pod", key) if owner is None else (owner.kind, owner.key)))

    def _diagnosed(self, pod: Pod) -> Diagnosis:
        self._searches += 1
        searched = self._searches <= MOST_DIAGNOSED
        found = self.snapshot.diagnose(
            pod,
            templates=self._settings.templates,
            pool_label=self._settings.pool_label,
            served={name: each for name, each in self.snapshot.profiles.items() if self._is_served(name)},
            with_remedies=searched,
        )
        if searched:
            return replace(found, remedies=tuple(each for each in found.remedies if self.is_possible(each)))
        return replace(found, bounded=f"remedies were searched for {MOST_DIAGNOSED} kinds of pods; name this pod")

    def is_possible(self, remedy: Remedy) -> bool:
        """False if it takes the place of pods that have none yet: of manifests, or earlier in the queue."""
        return not any(key in self.rehearsed for key in remedy.evicted)

    def _elsewhere(self, pod: Pod, serving: Serving) -> tuple[Explanation, Diagnosis]:
        """A pod whose scheduler is absent, or not known here: what another scheduler would do with it."""
        if not serving.absent:
            problem = f"{pod.key} has schedulerName {pod.scheduler_name}, which has no profile"
            remedy = f"profiles: {', '.join(self.snapshot.profiles)}; name that scheduler's configuration with --config"
            raise ConfigError(problem, remedy=remedy)
        name = self._serving_name()
        profile_name = name or next(iter(self.snapshot.profiles))
        spec = msgspec.structs.replace(pod.spec, scheduler_name=profile_name)
        variant = msgspec.structs.replace(pod, spec=spec)
        explanation = self.snapshot.engine.explain_pod(variant)
        found = self._diagnosed(variant) if explanation.decision.node is None else Diagnosis()
        remedies = answers.under_another_name(pod, name, explanation.decision.node, found) if name else ()
        decision = replace(explanation.decision, pod=pod)
        return replace(explanation, decision=decision), answers.unserved(serving, replace(found, remedies=remedies))

    def _is_served(self, name: str) -> bool:
        return self.schedulers.of(name).state == SERVES

    def _serving_name(self) -> str:
        """Return a scheduler name that is served, as far as can be seen: the default one first."""
        names = sorted(self.snapshot.profiles, key=lambda name: name != DEFAULT)
        return next((name for name in names if not self.schedulers.of(name).absent), "")

    def _waiting(self, pod: Pod) -> Waiting:
        self._asked += 1
        if not pod.pending or self._asked > MOST_ASKED or pod.key not in self.snapshot.pods:
            return answers.waiting(pod, None, ())
        found = answers.waiting(pod, self.source.document("Pod", pod.key), self.source.events(pod.key))
        return replace(found, queue=self.queue_of(pod))

    @property
    def _documents(self) -> Documents:
        def document(kind: str, key: str) -> Mapping[str, Any] | None:
            found = self.source.document(kind, key)
            if found is not None:
                return found
            known = self.snapshot.objects.get((kind, key))
            return None if known is None or kind in OWNER_KINDS else answers.document_of(known)

        return document


OWNER_KINDS = ("Deployment", "ReplicaSet", "StatefulSet")  # typed ones have no template
