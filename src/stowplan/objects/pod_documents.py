"""Reads a pod's JSON in one pass, and what many pods have in common only once.

Most pods come from a template. The text of their spec is the same but for two places: the name of the node, and the
name of the volume with the token. Without these it is the key of what was read before, and all pods of the template
share the parts of the spec, and the shape. Labels, annotations, owners and most of the status are shared likewise. What
is left to read for each pod is a few short texts.

`PodDecoder` gives what a plain decoder of `Pod` gives. What it cannot read raises an error of msgspec, as there.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from sys import intern
from typing import Final, TypeAlias, TypeVar

import msgspec

from stowplan.objects.gpu_requests import annotations_of
from stowplan.objects.meta import ObjectMeta, OwnerReference
from stowplan.objects.pod_parts import (
    ContainerStatus,
    PodClaimStatus,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import Quantity, custom_value
from stowplan.objects.recent_values import RecentValues
from stowplan.objects.shape import Shape

Part = TypeVar("Part")
ContainerKey: TypeAlias = tuple[tuple[str, bytes, bytes], ...]
StatusKey: TypeAlias = tuple[str, tuple[PodCondition, ...], ContainerKey, ContainerKey, bytes, bytes, bytes]
ShapeKey: TypeAlias = tuple[str, ContainerKey, ContainerKey, bytes, bytes, tuple[str, ...], tuple[tuple[str, str], ...]]

NOTHING: Final = msgspec.Raw()
NODE_NAME: Final = b'"nodeName":"'
# A mount of the token, or its volume. Quotes within a text of JSON are escaped, so nothing else looks like it.
TOKEN: Final = b'{"name":"kube-api-access-'
AFTER_TOKEN: Final = (
    b'","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"',
    b'","projected":{',
)
TOKEN_LETTERS: Final = 5  # that are drawn for each pod
LONGEST_SPEC, LONGEST_PART = 16 << 10, 4 << 10  # bytes of text; what is longer is read each time
MOST_SPECS, MOST_PARTS = 1 << 20, 1 << 18  # bytes of text that are kept, twice over
PER_CONDITION = 64  # bytes that count for a condition besides its texts
MOST_SHAPES = 32  # of one spec: it may be in several namespaces, and its pods may be resized


class _PodMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: msgspec.Raw = NOTHING
    annotations: msgspec.Raw = NOTHING
    owner_references: msgspec.Raw = NOTHING
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    resource_version: str = ""
    generation: int = 0


class _RawContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: msgspec.Raw = NOTHING
    allocated_resources: msgspec.Raw = NOTHING


class _RawPodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[_RawContainerStatus, ...] = ()
    init_container_statuses: tuple[_RawContainerStatus, ...] = ()
    resources: msgspec.Raw = NOTHING
    allocated_resources: msgspec.Raw = NOTHING
    resource_claim_statuses: msgspec.Raw = NOTHING


class _PodDocument(msgspec.Struct):
    metadata: _PodMetadata = msgspec.field(default_factory=_PodMetadata)
    spec: msgspec.Raw = NOTHING
    status: _RawPodStatus = msgspec.field(default_factory=_RawPodStatus)


class _SpecTemplate:
    """A spec without the name of its node, and the shapes of its pods. `shared`: they do not depend on a pod's name.

    `misread`: what was cut out of the text was not the name of the node.
    """

    __slots__ = ("misread", "shapes", "shared", "spec")

    def __init__(self, spec: PodSpec, misread: bool = False) -> None:
        self.spec, self.misread = spec, misread
        self.shared = not any(volume.ephemeral for volume in spec.volumes)
        self.shapes: dict[ShapeKey, Shape] = {}


def _decoder(kind: type[Part]) -> msgspec.json.Decoder[Part]:
    return msgspec.json.Decoder(kind, dec_hook=custom_value)


_document = _decoder(_PodDocument)
_spec = _decoder(PodSpec)
_optional_resources: msgspec.json.Decoder[ResourceRequirements | None] = msgspec.json.Decoder(
    ResourceRequirements | None, dec_hook=custom_value
)
_amounts = _decoder(dict[str, Quantity])
_claims = _decoder(tuple[PodClaimStatus, ...])
_texts = _decoder(dict[str, str])
_owners = _decoder(tuple[OwnerReference, ...])
NO_TEXTS: Final[dict[str, str]] = {}


def _read_status(key: StatusKey) -> PodStatus:
    phase, conditions, containers, init_containers, resources, allocated, claims = key
    return PodStatus(
        phase=phase,
        conditions=conditions,
        container_statuses=tuple(map(_container_status, containers)),
        init_container_statuses=tuple(map(_container_status, init_containers)),
        resources=_optional_resources.decode(resources) if resources else None,
        allocated_resources=_amounts.decode(allocated) if allocated else {},
        resource_claim_statuses=_claims.decode(claims) if claims else (),
    )


def _container_status(key: tuple[str, bytes, bytes]) -> ContainerStatus:
    name, resources, allocated = key
    return ContainerStatus(
        name,
        _optional_resources.decode(resources) if resources else None,
        _amounts.decode(allocated) if allocated else {},
    )


def _status_weight(key: StatusKey) -> int:
    _, conditions, containers, init_containers, resources, allocated, claims = key
    texts = sum(PER_CONDITION + len(each.type) + len(each.message) + len(each.reason) for each in conditions)
    amounts = sum(len(part) for each in (*containers, *init_containers) for part in each)
    return texts + amounts + len(resources) + len(allocated) + len(claims)


class PodDecoder:
    """Decodes pods, as msgspec's decoder of `Pod` does."""

    def decode(self, text: bytes | str, /) -> Pod:
        found = _document.decode(text)
        metadata, status = found.metadata, found.status
        key = _status_key(status)
        common = _statuses.value(key)
        if status.start_time is not None or status.nominated_node_name:
            common = msgspec.structs.replace(
                common, start_time=status.start_time, nominated_node_name=intern(status.nominated_node_name)
            )
        own = _read_metadata(metadata)
        template, node_name = _read_spec(bytes(found.spec))
        spec = msgspec.structs.replace(template.spec, node_name=node_name) if node_name else template.spec
        pod = Pod(own, spec, common)
        if template.shared:
            _share_shape(pod, template, key)
        return pod


def _read_metadata(found: _PodMetadata) -> ObjectMeta:
    labels, annotations, owners = bytes(found.labels), bytes(found.annotations), bytes(found.owner_references)
    return ObjectMeta(
        found.name,
        intern(found.namespace),
        found.uid,
        _text_sets.value(labels) if labels else NO_TEXTS,
        _text_sets.value(annotations) if annotations else NO_TEXTS,
        _owner_lists.value(owners) if owners else (),
        found.creation_timestamp,
        found.deletion_timestamp,
        found.resource_version,
        found.generation,
    )


def _status_key(status: _RawPodStatus) -> StatusKey:
    return (
        intern(status.phase),
        status.conditions,
        _container_key(status.container_statuses),
        _container_key(status.init_container_statuses),
        bytes(status.resources),
        bytes(status.allocated_resources),
        bytes(status.resource_claim_statuses),
    )


def _container_key(found: tuple[_RawContainerStatus, ...]) -> ContainerKey:
    return tuple([(each.name, bytes(each.resources), bytes(each.allocated_resources)) for each in found])


def _read_spec(text: bytes) -> tuple[_SpecTemplate, str]:
    """The template of a spec, and the name of its node, which is cut out of the text if it is there once."""
    begin = text.find(NODE_NAME)
    if begin < 0:
        template = _templates.value(_without_token(text)) if text else _EMPTY
        return template, template.spec.node_name
    begin += len(NODE_NAME)
    end = text.find(b'"', begin)
    name = text[begin:end]
    if end >= 0 and b"\\" not in name and text.find(NODE_NAME, end) < 0:
        template = _templates.value(_without_token(text[:begin] + text[end:]))
        if not template.misread:
            return template, intern(name.decode())
    template = _SpecTemplate(_spec.decode(text))
    return template, template.spec.node_name


def _without_token(text: bytes) -> bytes:
    """The text without the letters that are drawn for each pod: no decision reads the name of this volume."""
    parts = text.split(TOKEN)
    if len(parts) == 1:
        return text
    later = [part[TOKEN_LETTERS:] if part.startswith(AFTER_TOKEN, TOKEN_LETTERS) else part for part in parts[1:]]
    return TOKEN.join((parts[0], *later))


def _read_template(text: bytes) -> _SpecTemplate:
    """Where the name of a node was cut out, a mark says if it was the pod's: a label may have the same name."""
    marked = text.replace(NODE_NAME + b'"', NODE_NAME + b'?"')
    spec = _spec.decode(marked)
    if marked == text:
        return _SpecTemplate(spec)
    return _SpecTemplate(msgspec.structs.replace(spec, node_name=""), misread=spec.node_name != "?")


def _share_shape(pod: Pod, template: _SpecTemplate, status: StatusKey) -> None:
    """Give the pod the shape of an earlier one that differs in nothing that a shape reads."""
    _, conditions, containers, init_containers, resources, allocated, _ = status
    resize = tuple([each.reason for each in conditions if each.type == "PodResizePending"])
    gpus = annotations_of(pod.metadata)
    key = (pod.metadata.namespace, containers, init_containers, resources, allocated, resize, gpus)
    shape = template.shapes.get(key)
    if shape is not None:
        vars(pod)["shape"] = shape
        return
    if len(template.shapes) >= MOST_SHAPES:
        template.shapes.clear()
    with suppress(Exception):  # whoever asks for its shape is told why it has none
        template.shapes[key] = pod.shape


_EMPTY: Final = _SpecTemplate(PodSpec())
_templates = RecentValues[bytes, _SpecTemplate](_read_template, len, MOST_SPECS, LONGEST_SPEC)
_text_sets = RecentValues[bytes, dict[str, str]](_texts.decode, len, MOST_PARTS, LONGEST_PART)
_owner_lists = RecentValues[bytes, tuple[OwnerReference, ...]](_owners.decode, len, MOST_PARTS, LONGEST_PART)
_statuses = RecentValues[StatusKey, PodStatus](_read_status, _status_weight, MOST_PARTS, LONGEST_PART)
