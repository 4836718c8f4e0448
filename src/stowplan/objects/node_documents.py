"""Reads a node's JSON, and what many nodes have in common only once: amounts, conditions, images.

`NodeDecoder` gives what a plain decoder of `Node` gives. What it cannot read raises an error of msgspec, as there.
"""

from __future__ import annotations

from typing import Final

import msgspec

from stowplan.objects.meta import ObjectMeta
from stowplan.objects.nodes import ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus
from stowplan.objects.quantity import Quantity, custom_value
from stowplan.objects.recent_values import RecentValues

NOTHING: Final = msgspec.Raw()
MOST_PARTS, MOST_IMAGES = 1 << 18, 1 << 20  # bytes of text that are kept, twice over
LONGEST_PART = 4 << 10  # bytes of text; what is longer is read each time


class _RawNodeStatus(msgspec.Struct, rename="camel"):
    allocatable: msgspec.Raw = NOTHING
    images: tuple[msgspec.Raw, ...] = ()
    declared_features: msgspec.Raw = NOTHING
    conditions: tuple[NodeCondition, ...] = ()


class _NodeDocument(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: _RawNodeStatus = msgspec.field(default_factory=_RawNodeStatus)


_document = msgspec.json.Decoder(_NodeDocument, dec_hook=custom_value)
_amounts = RecentValues[bytes, dict[str, Quantity]](
    msgspec.json.Decoder(dict[str, Quantity], dec_hook=custom_value).decode, len, MOST_PARTS, LONGEST_PART
)
_features = RecentValues[bytes, tuple[str, ...]](
    msgspec.json.Decoder(tuple[str, ...]).decode, len, MOST_PARTS, LONGEST_PART
)
_images = RecentValues[bytes, ContainerImage](
    msgspec.json.Decoder(ContainerImage).decode, len, MOST_IMAGES, LONGEST_PART
)
_conditions = RecentValues[tuple[NodeCondition, ...], tuple[NodeCondition, ...]](
    lambda found: found,
    lambda found: sum(len(each.type) + len(each.status) for each in found),
    MOST_PARTS,
    LONGEST_PART,
)


class NodeDecoder:
    """Decodes nodes, as msgspec's decoder of `Node` does."""

    def decode(self, text: bytes | str, /) -> Node:
        found = _document.decode(text)
        status = found.status
        allocatable, features = bytes(status.allocatable), bytes(status.declared_features)
        return Node(
            found.metadata,
            found.spec,
            NodeStatus(
                _amounts.value(allocatable) if allocatable else {},
                tuple([_images.value(bytes(each)) for each in status.images]),
                _features.value(features) if features else (),
                _conditions.value(status.conditions) if status.conditions else (),
            ),
        )
