"""Pods of one template, as many as are wanted: each has a name of its own, and claims of its own where it needs them.

    series = PodSeries(pod, claims)
    pod, claims = series[0]            # the first one; series[1] is the second

Controllers would make them. Here the first pod is copied, which costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

import msgspec

from stowplan.objects.meta import ObjectMeta, OwnerReference
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.storage import ClaimSpec, PersistentVolumeClaim

STATEFUL_SET = "StatefulSet"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"-\d+$")


class PodSeries:
    """`claims`: those that a controller made for the first pod. `taken`: the keys of pods that exist.

    `storage_class`: the default one, for the claims of ephemeral volumes that name none.
    """

    def __init__(
        self,
        first: Pod,
        claims: Iterable[PersistentVolumeClaim] = (),
        taken: Container[str] = (),
        storage_class: str = "",
    ) -> None:
        self.first, self._taken, self._storage_class = first, taken, storage_class
        named = {each.persistent_volume_claim.claim_name for each in first.spec.volumes if each.persistent_volume_claim}
        self._own = {each.name: each for each in claims if each.name in named}
        owner = first.controller()
        is_stateful = owner is not None and owner.kind == STATEFUL_SET
        self._has_ordinals = is_stateful and _ORDINAL.search(first.name) is not None
        self._numbers: list[int] = []  # those whose names are free

    def __getitem__(self, at: int) -> tuple[Pod, list[PersistentVolumeClaim]]:
        while len(self._numbers) <= at:
            number = self._numbers[-1] + 1 if self._numbers else 0
            while f"{self.first.namespace}/{self._name(number)}" in self._taken:
                number += 1
            self._numbers.append(number)
        return self._made(self._numbers[at])

    def _name(self, number: int) -> str:
        if self._has_ordinals:
            return _ORDINAL.sub(f"-{number}", self.first.name)
        return self.first.name if number == 0 else f"{self.first.name}-{number + 1}"

    def _made(self, number: int) -> tuple[Pod, list[PersistentVolumeClaim]]:
        first, name = self.first, self._name(number)
        metadata = msgspec.structs.replace(
            first.metadata, name=name, uid=_uid(first.namespace, name), labels=self._labels(name, number)
        )
        names = {old: _ORDINAL.sub(f"-{number}", old) for old in self._own} if self._has_ordinals else {}
        spec = first.spec
        if names:
            volumes = tuple(_renamed(each, names) for each in spec.volumes)
            spec = msgspec.structs.replace(spec, volumes=volumes)
        pod = msgspec.structs.replace(first, metadata=metadata, spec=spec)
        claims = [_claim_named(each, names.get(old, old)) for old, each in self._own.items()]
        claims += self._ephemeral(pod)
        if not claims:
            vars(pod)["shape"] = first.shape  # it is not worked out again
        return pod, claims

    def _labels(self, name: str, number: int) -> dict[str, str]:
        found = self.first.labels
        own = {POD_NAME: name, POD_INDEX: str(number)}
        return {key: own.get(key, value) for key, value in found.items()} if self._has_ordinals else found

    def _ephemeral(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        """Yield the claims that the controller of ephemeral volumes makes, as far as pods tell: without their size."""
        for volume in pod.spec.volumes:
            template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
            if template is None:
                continue
            name, given = f"{pod.name}-{volume.name}", template.spec.storage_class_name
            spec = ClaimSpec(storage_class_name=self._storage_class if given is None else given)
            owner = OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True)
            metadata = ObjectMeta(name, pod.namespace, _uid(pod.namespace, name), owner_references=(owner,))
            yield PersistentVolumeClaim(metadata=metadata, spec=spec)


def _uid(namespace: str, name: str) -> str:
    return f"new/{namespace}/{name}"  # no object of a cluster has such a uid


def _claim_named(claim: PersistentVolumeClaim, name: str) -> PersistentVolumeClaim:
    metadata = msgspec.structs.replace(claim.metadata, name=name, uid=_uid(claim.namespace, name))
    return msgspec.structs.replace(claim, metadata=metadata)


def _renamed(volume: Volume, names: dict[str, str]) -> Volume:
    claim = volume.persistent_volume_claim
    if claim is None or claim.claim_name not in names:
        return volume
    renamed = msgspec.structs.replace(claim, claim_name=names[claim.claim_name])
    return msgspec.structs.replace(volume, persistent_volume_claim=renamed)
