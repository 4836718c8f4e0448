"""A pod on its way to a node, from the decision to the binding: reserved, waiting, pre-binding, binding.

Each step is one call of the profile's plugins. Whatever goes wrong, `release` gives everything back in reverse order.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster
from stowplan.engine.unit import Unit
from stowplan.framework.asking import ask
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import Refuse, Verdict
from stowplan.objects.pods import Pod

LONGEST_PERMIT = 900.0


class Step(Enum):
    RESERVED = "reserved"
    WAITING = "waiting"
    PRE_BINDING = "pre-binding"
    BINDING = "binding"


class Placing:
    """One pod, the node it was given, and how far it has come."""

    __slots__ = (
        "announced", "assumed", "awaited", "node_name", "permits", "pod", "profile", "seen_bound", "state", "step",
        "unit", "waits_since",
    )  # fmt: skip

    def __init__(self, pod: Pod, node_name: str, unit: Unit, profile: Profile, state: ClusterState) -> None:
        self.pod, self.node_name, self.unit, self.profile, self.state = pod, node_name, unit, profile, state
        self.step = Step.RESERVED
        self.assumed = assumed(pod, node_name)
        self.permits: dict[str, float] = {}  # plugins that make it wait, and how long at the most
        self.awaited: set[int] = set()  # actions whose results it waits for, and reminders
        self.waits_since = 0.0  # for its permits
        self.announced = False  # the pod's status names the node already
        self.seen_bound = False  # the API server says that the pod is there, though nobody answered us yet

    def take_room(self) -> None:
        """The pod is taken for bound from now on."""
        self.state.add_pod(self.assumed, self.node_name)

    def reserve(self) -> Verdict | None:
        """Let plugins take whatever goes with the node; all of it is given back if one of them refuses."""
        for bound in self.profile.at("reserve"):
            if not hasattr(bound.plugin, "reserve"):
                continue
            refused: Refuse | None = ask(bound, "reserve", self.pod, self.node_name, self.state)
            if refused is not None:
                self.release()
                return Verdict(bound.name, refused.code, refused.reasons)
        return None

    def ask_permits(self) -> Verdict | None:
        """May it go on? Plugins that want it to wait are noted in `permits`."""
        for bound in self.profile.at("permit"):
            answer: Refuse | float | None = ask(bound, "permit", self.pod, self.node_name, Cluster(self.state))
            if isinstance(answer, Refuse):
                self.release()
                return Verdict(bound.name, answer.code, answer.reasons)
            if answer is not None:
                self.permits[bound.name] = min(float(answer), LONGEST_PERMIT)
        return None

    def pre_bind(self) -> Iterator[Any]:
        """Actions that must succeed first."""
        for bound in self.profile.at("preBind"):
            if hasattr(bound.plugin, "pre_bind"):
                yield from ask(bound, "pre_bind", self.pod, self.node_name, Cluster(self.state))

    def bind(self) -> Any | None:
        """The binding, by the first plugin that wants to do it."""
        for bound in self.profile.at("bind"):
            action = ask(bound, "bind", self.pod, self.node_name)
            if action is not None:
                return action
        return None

    def siblings(self) -> Iterator[str]:
        """Uids of pods that plugins want tried, now that this one has come so far."""
        cluster = Cluster(self.state)
        for plugin in self.profile.activators:
            yield from ask(plugin, "siblings", self.pod, cluster) or ()

    def post_bind(self) -> Iterator[Any]:
        for bound in self.profile.at("postBind"):
            yield from ask(bound, "post_bind", self.pod, self.node_name, Cluster(self.state)) or ()

    def release(self) -> None:
        """Give back what was reserved, the last first; then the node's room, unless it is somebody else's by now."""
        for bound in reversed(self.profile.at("reserve")):
            if hasattr(bound.plugin, "unreserve"):
                ask(bound, "unreserve", self.pod, self.node_name, self.state)
        placed = self.state.pods.get(self.pod.uid)
        if placed is not None and placed.pod is self.assumed:
            self.state.remove_pod(self.pod.uid)


def assumed(pod: Pod, node_name: str) -> Pod:
    """The pod as it will be once it is bound."""
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    made = msgspec.structs.replace(pod, spec=spec)
    if "shape" in pod.__dict__:
        made.__dict__["shape"] = pod.__dict__["shape"]  # where a pod is, is not part of its shape
    return made
