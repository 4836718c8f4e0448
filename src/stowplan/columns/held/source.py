"""What the state must know of an object that holds room on nodes for pods that do not exist yet.

Kubernetes has no such object. A plugin that brings one offers a `HoldingSource`, which translates objects of its kind
into `Holding` values. The state knows these values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod


class Slot(msgspec.Struct, frozen=True):
    """Room for one pod on a node. The amounts are in the units of the columns and include the one pod."""

    node: str
    amounts: Mapping[str, int]


class Holding(msgspec.Struct, frozen=True):
    """The room that one object holds.

    slots         the slots by name, in the order in which pods take them
    owner         the uid of the pod that the holding depends on: without a node for this pod nothing is held
    owner_slot    the name of the slot that only the owner can take
    reported      the pod's name by slot, as the object itself reports it
    """

    slots: Mapping[str, Slot] = {}
    owner: str = ""
    owner_slot: str = ""
    reported: Mapping[str, str] = {}


class HoldingSource(Protocol):
    """Translates one kind of object into holdings. It must not keep anything that changes."""

    @property
    def kind(self) -> type[Object]:
        """The kind of object that holds room."""

    def key_of(self, pod: Pod) -> str:
        """Return the key of the object that holds room for this pod, whether the object exists or not; or ""."""

    def holding(self, found: Object) -> Holding:
        """Return the room that this object holds."""
