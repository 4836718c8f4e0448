"""Answers about pods of a snapshot. Each costs one search; `in_order` asks once about pods that are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from stowplan.apps.explain import answers
from stowplan.apps.explain.answers import Answer, Waiting
from stowplan.apps.explain.kubectl_commands import Documents, Manifest, Owner, PodCount, PodOrigin, RemedyCommands
from stowplan.apps.explain.schedulers import DEFAULT, SERVES, Schedulers, Serving
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import ObjectSource
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.remedy import ObjectChange, PatchObject, Remedy
from stowplan.diagnosis.search import POOL_LABEL
from stowplan.engine.explain import Explanation
from stowplan.framework.profile import Profile
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

CLAIM = "PersistentVolumeClaim"
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
        self._counts: dict[Owner, PodCount] | None = None
        self.manifests: dict[tuple[str, str], Manifest] = {}  # by kind and key: what does not exist yet
        self.rehearsed: set[str] = set()  # the keys of pods that are on nodes only in this run
        self.claims_to_come: dict[str, str] = {}  # claims that do not exist before a file is applied, by key
        self.queue_of: Callable[[Pod], Mapping[str, Any] | None] = lambda _: None

    def kind(self, pod: Pod) -> Hashable:
        """Return what pods must share to have the same answer: not only their template, but also the owner."""
        if not pod.pending or pod.nominated_node or self.snapshot.in_group(pod):
            return pod.uid
        owner = self.owners.of(pod)
        labels = frozenset(pod.labels.items()) if owner is None else None
        return pod.namespace, owner, labels, msgspec.json.encode(pod.spec, enc_hook=str)

    def is_foreign(self, pod: Pod) -> bool:
        """True for a pod of a scheduler that is at work, and whose configuration is not known here."""
        known = pod.scheduler_name in self.snapshot.profiles
        return not known and not self.schedulers.of(pod.scheduler_name).absent

    def explanation(self, pod: Pod) -> Explanation | None:
        """Return where a pod would go now; None if nobody serves it."""
        serving = self._serving(pod)
        if serving.absent:
            return None
        return self._as_with(pod, serving.assumed) if serving.assumed else self.snapshot.answer(pod)

    def _serving(self, pod: Pod) -> Serving:
        """Return who serves a pod, and the profile that it is judged with if that of its scheduler is not known."""
        found = self.schedulers.of(pod.scheduler_name)
        if found.absent or pod.scheduler_name in self.snapshot.profiles:
            return found
        return replace(found, assumed=self._assumed)

    @property
    def _assumed(self) -> str:
        """The default profile, or the first one of the configuration."""
        profiles = self.snapshot.profiles
        return DEFAULT if DEFAULT in profiles else next(iter(profiles))

    def profiles_for(self, pods: Iterable[Pod]) -> dict[str, Profile]:
        """Return the profiles by scheduler name, with those that are assumed for these pods."""
        assumed = {each.name: each.assumed for each in map(self._serving, pods) if each.assumed}
        profiles = self.snapshot.profiles
        return profiles | {name: profiles[known] for name, known in assumed.items()}

    def _as_with(self, pod: Pod, profile: str) -> Explanation:
        """Return where a pod would go if it had another schedulerName."""
        explanation = self.snapshot.engine.explain_pod(_renamed(pod, profile))
        return replace(explanation, decision=replace(explanation.decision, pod=pod))

    def answer(self, pod: Pod) -> Answer:
        serving = self._serving(pod)
        if serving.absent:
            explanation, diagnosis = self._elsewhere(pod, serving)
        elif serving.assumed:
            explanation, diagnosis = self._as_with(pod, serving.assumed), Diagnosis()
            if explanation.node is None:
                diagnosis = self._diagnosed(_renamed(pod, serving.assumed))
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
            is_node_known=not pod.node_name or not self.snapshot.state.table.live_count or self._knows(pod.node_name),
            now=self.source.now(),
        )
        return self.with_commands(found)

    def _knows(self, node: str) -> bool:
        return ("Node", node) in self.snapshot.objects

    def with_commands(self, answer: Answer) -> Answer:
        """Return the answer with the commands of its remedies, and what is to be said of them."""
        commands = tuple(self.commands(each.changes) for each in answer.diagnosis.remedies)
        remedies = tuple(self._noted(each) for each in answer.diagnosis.remedies)
        origin = self._origin(answer.pod.key)
        file = "" if origin is None or origin.manifest is None else origin.manifest.file
        diagnosis = replace(answer.diagnosis, remedies=remedies)
        return replace(answer, diagnosis=diagnosis, commands=commands, file=file)

    def _noted(self, remedy: Remedy) -> Remedy:
        """Return the remedy with what is to be said of its commands."""
        found = self._commands.noted(remedy)
        claims = (each.key for each in remedy.changes if isinstance(each, PatchObject) and each.kind == CLAIM)
        first = {key: self.claims_to_come[key] for key in claims if key in self.claims_to_come}
        notes = (f"apply {file} before the claim {key} is patched: it makes it" for key, file in first.items())
        return replace(found, also=(*found.also, *notes))

    def commands(self, changes: Sequence[ObjectChange]) -> tuple[str, ...]:
        return self._commands.of(changes)

    @property
    def _commands(self) -> RemedyCommands:
        return RemedyCommands(self._documents, self._origin, self._settings.flags, self._pods_of)

    def _pods_of(self, owner: Owner) -> PodCount:
        if self._counts is None:
            self._counts = self.owners.counts(self.snapshot.pods.values(), self.rehearsed)
        return self._counts.get(owner, PodCount())

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
        """A pod whose scheduler is absent: what another scheduler would do with it."""
        name = self._serving_name()
        profile_name = name or next(iter(self.snapshot.profiles))
        explanation = self._as_with(pod, profile_name)
        node = explanation.decision.node
        found = self._diagnosed(_renamed(pod, profile_name)) if node is None else Diagnosis()
        remedies = answers.under_another_name(pod, name, node, found) if name else ()
        return explanation, answers.unserved(serving, replace(found, remedies=remedies))

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


def _renamed(pod: Pod, scheduler: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=scheduler))


OWNER_KINDS = ("Deployment", "ReplicaSet", "StatefulSet")  # typed ones have no template
