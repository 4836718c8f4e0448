"""The shape of a pod: everything in its template that decisions read, computed once for all pods of the template.

Shapes are found by `signature`, the bytes of all these fields. Each value of a shape is computed when it is first
needed. What differs between the pods of one template (name, uid, labels, node, start time) is not part of the shape.

Pods may differ in their volumes alone (each has a claim of its own) or in their requests alone (each is sized for its
work). Such pods have shapes of their own, and share in `bare` or in `unsized` what the difference does not touch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from stowplan.objects import affinity, gpu_requests, requests
from stowplan.objects.affinity import AffinityTerm, WeightedTerm
from stowplan.objects.gpu_requests import GpuRequest
from stowplan.objects.lazy_value import lazy_value
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pod_parts import Container, Volume
from stowplan.objects.selectors import NodeTerm, Selector, compile_node_selector, compile_term, from_labels
from stowplan.objects.taints import Toleration

if TYPE_CHECKING:
    from stowplan.objects.pods import Pod

Value = TypeVar("Value")
Use: TypeAlias = tuple[Hashable, ...]  # what a pod uses of its node: the sort of use, then what is used

ANY_ADDRESS = "0.0.0.0"
REQUIRED_ANTI = "required-anti-affinity"
REQUIRED = "required-affinity"
PREFERRED = "preferred-affinity"
ATTACHABLE = ("attachable",)  # the use of volumes that may count against a node's limit of attached volumes

_ATTACHABLE_FIELDS = (
    "persistent_volume_claim", "ephemeral", "gce_persistent_disk", "aws_elastic_block_store", "azure_disk", "cinder",
    "portworx_volume",
)  # fmt: skip

RECENT_SHAPES = 1024  # shapes that are kept although no pod has them: the next pod of the template may come soon
LONGEST_RECENT = 16 * 1024  # bytes of the signature; a larger shape goes with its pods

_encode = msgspec.json.Encoder(enc_hook=str).encode
_RESOURCES = Container.__struct_fields__.index("resources")


def signature(pod: Pod, *, with_volumes: bool = True) -> bytes:
    """Return bytes that are equal for two pods if no decision can distinguish their templates.

    `with_volumes`: False if no plugin that is to be asked looks at volumes.
    """
    return _apart_from_both(pod) + (_volumes(pod) if with_volumes else b"") + _requests(pod)


def _apart_from_both(pod: Pod) -> bytes:
    """What is neither a request nor a volume."""
    spec = pod.spec
    facts = (
        pod.namespace, _unsized(spec.containers), _unsized(spec.init_containers), spec.node_selector, spec.affinity,
        spec.tolerations, spec.topology_spread_constraints, spec.resource_claims, spec.scheduling_group,
        spec.host_network, spec.host_users,
    )  # fmt: skip
    gpus = gpu_requests.annotations_of(pod.metadata) if pod.metadata.annotations else ()
    return _encode((*facts, gpus) if gpus else facts)


def _volumes(pod: Pod) -> bytes:
    """The volumes that plugins read; nothing if there are none. Claims of ephemeral volumes are named after the pod."""
    volumes = [volume for volume in pod.spec.volumes if is_read(volume)]
    if not volumes:
        return b""
    return _encode((volumes, pod.name) if any(volume.ephemeral for volume in volumes) else volumes)


def _unsized(containers: Sequence[Container]) -> list[tuple[object, ...]]:
    """Return all fields of containers but their requests and limits."""
    fields = [msgspec.structs.astuple(container) for container in containers]
    return [(*each[:_RESOURCES], *each[_RESOURCES + 1 :]) for each in fields]


def _requests(pod: Pod) -> bytes:
    """What the pod requests and was granted. A status has nothing else that decisions read."""
    spec, status = pod.spec, pod.status
    resize = [condition.reason for condition in status.conditions if condition.type == "PodResizePending"]
    return _encode((
        [container.resources for container in spec.containers],
        [container.resources for container in spec.init_containers],
        spec.resources, spec.overhead, status.container_statuses, status.init_container_statuses,
        status.resources, status.allocated_resources, resize,
    ))  # fmt: skip


def is_read(volume: Volume) -> bool:
    """True if plugins read this volume. Tokens, config maps and scratch space differ in name only."""
    return volume != Volume(name=volume.name)


def shape_of(pod: Pod) -> Shape:
    """Return the shape that all pods of this pod's template share."""
    rest, volumes, sizes = _apart_from_both(pod), _volumes(pod), _requests(pod)
    key = rest + volumes + sizes
    shape = _shapes.get(key)
    if shape is None:
        template = _template(pod)
        if volumes:
            shape = Shape(template, key, bare=_shapes.get(rest + sizes) or _without_volumes(pod))
        else:
            unsized = _unsized_shapes.get(rest)
            if unsized is None:
                unsized = _unsized_shapes[rest] = Shape(template, rest)
            shape = Shape(template, key, unsized=unsized)
        _shapes[key] = shape
        if len(key) <= LONGEST_RECENT:
            _recent.append(shape)
    return shape


def _without_volumes(pod: Pod) -> Shape:
    """Return the shape that the pod would have without its volumes."""
    return shape_of(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=())))


def _template(pod: Pod) -> Pod:
    """Return the pod without what is no part of its shape: most annotations, for example, which may be large."""
    annotations = dict(gpu_requests.annotations_of(pod.metadata))
    metadata = ObjectMeta(name=pod.name, namespace=pod.namespace, annotations=annotations)
    return msgspec.structs.replace(pod, metadata=metadata)  # a copy in any case: `pod.shape` would make a cycle


_FROM_BARE: list[str] = []  # the values that a shape shares with its `bare` shape


def apart_from_volumes(function: Callable[[Shape], Value]) -> lazy_value[Value]:
    """Make a lazy value that pods share which differ in nothing but their volumes."""
    _FROM_BARE.append(function.__name__)
    return _shared(function, "bare")


def apart_from_requests(function: Callable[[Shape], Value]) -> lazy_value[Value]:
    """Make a lazy value that pods share which differ in nothing but their requests."""
    return _shared(function, "unsized")


def apart_from_both(function: Callable[[Shape], Value]) -> lazy_value[Value]:
    """Make a lazy value that pods share which differ in nothing but their volumes and requests."""
    _FROM_BARE.append(function.__name__)
    return _shared(function, "kin")


def _shared(function: Callable[[Shape], Value], where: str) -> lazy_value[Value]:
    """`where`: the shape's attribute that has the shape to ask instead, if there is one."""
    shape_to_ask, value = attrgetter(where), attrgetter(function.__name__)

    @wraps(function)
    def shared(shape: Shape) -> Value:
        other: Shape | None = shape_to_ask(shape)
        if other is None:
            return function(shape)
        found: Value = value(other)
        return found

    return lazy_value(shared)


class Shape:
    """What a template says to a scheduler.

    pod       one of the pods of this shape, without labels and annotations
    bare      the shape of pods that differ from these in having no volumes; None if these have none
    unsized   what pods without volumes share that differ from these in nothing but their requests; None if these have
              volumes. Nobody may ask it about requests
    kin       the one of these two that there is
    """

    def __init__(self, pod: Pod, key: bytes = b"", *, bare: Shape | None = None, unsized: Shape | None = None) -> None:
        self.pod, self.key, self.bare, self.unsized = pod, key, bare, unsized
        self.kin = bare or unsized
        if bare is not None:  # nearly each pod with a claim has a shape of its own: it begins with what `bare` knows
            known, own = vars(bare), vars(self)
            for name in _FROM_BARE:
                if name in known:
                    own[name] = known[name]

    @lazy_value
    def _plain(self) -> dict[str, int] | None:
        """The pod's requests, if they are the same for all purposes: the usual case, computed once."""
        return requests.of_plain(self.pod)

    @apart_from_volumes
    def request(self) -> dict[str, int]:
        """The pod's requests for NodeResourcesFit."""
        return requests.incoming(self.pod) if self._plain is None else requests.counted(self._plain)

    @apart_from_volumes
    def scored(self) -> dict[str, int]:
        return requests.scored(self.pod) if self._plain is None else self._plain

    @apart_from_volumes
    def balanced(self) -> dict[str, int]:
        return requests.balanced(self.pod) if self._plain is None else self._plain

    @apart_from_volumes
    def taken(self) -> tuple[tuple[str, int], ...]:
        """The amounts that the pod takes on its node, including one of `pods`."""
        amounts = requests.running(self.pod) if self._plain is None else self.request
        return (("pods", 1), *amounts.items())

    @apart_from_volumes
    def presumed(self) -> tuple[int, int]:
        """cpu and memory that the pod takes, with defaults for missing requests."""
        if self._plain is not None:
            return self._plain.get("cpu", 0), self._plain.get("memory", 0)
        return requests.running_presumed(self.pod)

    @apart_from_volumes
    def gpus(self) -> GpuRequest | None:
        """What the pod asks of GPUs, shares of one included; None if it asks for none."""
        return gpu_requests.of(self.pod.metadata, self.request)

    @apart_from_requests
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.pod.spec.tolerations

    @apart_from_both
    def node_labels(self) -> Selector:
        """spec.nodeSelector."""
        return from_labels(self.pod.spec.node_selector)

    @apart_from_both
    def node_terms(self) -> tuple[NodeTerm, ...] | None:
        """Required node affinity; None if there is none, the empty tuple if no node can meet it."""
        required = self.pod.spec.affinity.node_affinity.required
        return None if required is None else compile_node_selector(required)

    @apart_from_both
    def preferred_node_terms(self) -> tuple[tuple[NodeTerm, int], ...]:
        terms = self.pod.spec.affinity.node_affinity.preferred
        compiled = ((compile_term(term.preference), term.weight) for term in terms)
        return tuple((term, weight) for term, weight in compiled if term is not None and weight)

    @apart_from_both
    def required_affinity(self) -> tuple[AffinityTerm, ...]:
        return affinity.compile_terms(self.pod.namespace, self.pod.spec.affinity.pod_affinity.required)

    @apart_from_both
    def required_anti_affinity(self) -> tuple[AffinityTerm, ...]:
        return affinity.compile_terms(self.pod.namespace, self.pod.spec.affinity.pod_anti_affinity.required)

    @apart_from_both
    def preferred_affinity(self) -> tuple[WeightedTerm, ...]:
        """Preferred terms of both kinds; anti-affinity has a negative weight."""
        spec, namespace = self.pod.spec.affinity, self.pod.namespace
        signed = ((1, spec.pod_affinity.preferred), (-1, spec.pod_anti_affinity.preferred))
        return tuple(
            WeightedTerm(affinity.compile_term(namespace, term.pod_affinity_term), sign * term.weight)
            for sign, terms in signed
            for term in terms
        )

    @apart_from_both
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """(address, protocol, port) that the pod wants on its node."""
        spec = self.pod.spec
        holders: list[Container] = [*(c for c in spec.init_containers if c.sidecar), *spec.containers]
        return tuple(
            (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in holders
            for port in container.ports
            if port.host_port > 0
        )

    @apart_from_requests
    def claims(self) -> tuple[str, ...]:
        """namespace/name of each claim the pod mounts, in order."""
        return tuple(claim for volume in self.pod.spec.volumes if (claim := claim_of(self.pod, volume)))

    @apart_from_requests
    def volumes(self) -> tuple[Volume, ...]:
        return tuple(volume for volume in self.pod.spec.volumes if is_read(volume))

    @apart_from_requests
    def uses(self) -> tuple[Use, ...]:
        """What the pod uses of its node, except ports: the keys of `columns/pods/uses.py`."""
        return tuple(self._uses())

    @apart_from_both
    def port_uses(self) -> tuple[tuple[Use, Use], ...]:
        """The same for host ports: the key with the address, and the key for any address."""
        return tuple(
            (("port", protocol, port, address), ("port", protocol, port, "*"))
            for address, protocol, port in dict.fromkeys(self.host_ports)
        )

    def _uses(self) -> Iterator[Use]:
        for volume in self.volumes:
            claim = volume.persistent_volume_claim
            if claim is not None:
                yield ("claim", claim_of(self.pod, volume))
                yield ("claim-name", claim.claim_name)
            if claim is not None or is_attachable(volume):
                yield ATTACHABLE
            yield from dict.fromkeys(disks(volume))
        yield from ((REQUIRED_ANTI, term) for term in self.required_anti_affinity)
        yield from ((REQUIRED, term) for term in self.required_affinity)
        yield from ((PREFERRED, weighted) for weighted in self.preferred_affinity)


_shapes: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()
_unsized_shapes: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()  # by what is apart from requests
_recent: deque[Shape] = deque(maxlen=RECENT_SHAPES)


def claim_of(pod: Pod, volume: Volume) -> str:
    """Return namespace/name of a volume's claim. Ephemeral volumes have one named after pod and volume."""
    if volume.persistent_volume_claim is not None:
        return f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
    return f"{pod.namespace}/{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def is_attachable(volume: Volume) -> bool:
    """True if a CSI driver may attach the volume: claims, and in-tree disks that are migrated."""
    return any(getattr(volume, field) is not None for field in _ATTACHABLE_FIELDS)


def disks(volume: Volume) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the disks that an inline volume attaches; each ends with the mode."""
    if (disk := volume.gce_persistent_disk) is not None:
        yield ("gce", disk.pd_name, _mode(disk.read_only))
    if (disk := volume.aws_elastic_block_store) is not None:
        yield ("ebs", disk.volume_id, "rw")
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn, _mode(iscsi.read_only))
    if (rbd := volume.rbd) is not None:
        for monitor in rbd.monitors:
            yield ("rbd", monitor, rbd.pool, rbd.image, _mode(rbd.read_only))


def _mode(read_only: bool) -> str:
    return "ro" if read_only else "rw"
