"""A pod on its way to a node, from the decision to the binding: reserved, waiting, pre-binding, binding.

Each step is one call of the profile's plugins. Whatever goes wrong, `release` gives everything back in reverse order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.queue.cluster_events import ASSIGNED, ClusterEvent
from stowplan.engine.queue.unit import Unit
from stowplan.framework.interfaces import PermitPlugin, PreBoundPlugin
from stowplan.framework.plugin_calls import call, call_list, call_optional, wrong
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.verdict import NotYet, Refuse, Verdict
from stowplan.objects.actions import AnyAction, Patch
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

LONGEST_PERMIT = 900.0


class BindStep(Enum):
    RESERVED = "reserved"
    WAITING = "waiting"
    PRE_BINDING = "pre-binding"
    BINDING = "binding"
    BOUND = "bound"  # says the answer to the binding; the watch has not said so yet


class BindTogether:
    """Members of a group who are placed together, or join in before that is settled: all are bound, or none."""

    def __init__(self) -> None:
        self._on_their_way: dict[str, AssumedPod] = {}
        self._ready: dict[str, AssumedPod] = {}
        self.reminder = 0  # of when they must all be ready

    def join(self, placing: AssumedPod) -> None:
        placing.party = self
        self._on_their_way[placing.uid] = placing

    def leave(self, placing: AssumedPod) -> None:
        placing.party = None
        self._on_their_way.pop(placing.uid, None)
        self._ready.pop(placing.uid, None)

    def is_ready(self, placing: AssumedPod) -> bool:
        """Note that this one is; whether all are now."""
        self._on_their_way.pop(placing.uid, None)
        self._ready[placing.uid] = placing
        return self.all_ready

    @property
    def all_ready(self) -> bool:
        return not self._on_their_way and bool(self._ready)

    @property
    def waiting(self) -> list[AssumedPod]:
        """Those that are not ready."""
        return list(self._on_their_way.values())

    def __len__(self) -> int:
        return len(self._on_their_way) + len(self._ready)

    def disband(self) -> list[AssumedPod]:
        placings = list(self._ready.values())
        for placing in placings:
            placing.party = None
        return placings


class AssumedPod:
    """One pod, the node it was given, and how far it has come."""

    __slots__ = (
        "announced", "awaited", "idle", "node_name", "party", "permits", "pod", "profile", "seen_bound", "state",
        "step", "uid", "unit", "waits_since",
    )  # fmt: skip

    def __init__(
        self, pod: Pod, node_name: str, unit: Unit, profile: Profile, state: ClusterState, idle: Set[str] = frozenset()
    ) -> None:
        """`idle`: plugins that have nothing to do for this pod."""
        self.pod, self.node_name, self.unit, self.profile, self.state = pod, node_name, unit, profile, state
        self.idle = idle
        self.step = BindStep.RESERVED
        self.uid = pod.uid
        self.permits: dict[str, float] = {}  # plugins that make it wait, and how long at the most
        self.awaited: set[int] = set()  # actions whose results it waits for, and reminders
        self.party: BindTogether | None = None  # the members of its group that it is bound with
        self.waits_since = 0.0  # for its permits
        self.announced = False  # the pod's status names the node already
        self.seen_bound = False  # the API server says that the pod is there, though nobody answered us yet

    @property
    def recallable(self) -> bool:
        """Nobody was asked to bind it yet."""
        return self.step not in (BindStep.BINDING, BindStep.BOUND)

    @property
    def leaving(self) -> ClusterEvent:
        """What it means to others that the pod does not get the node after all."""
        return ClusterEvent(ASSIGNED, "Delete", assumed(self.pod, self.node_name), None)

    def take_room(self) -> Verdict | str | None:
        """The pod is taken for bound from now on, with all that goes with it; or nothing is taken, and this is why."""
        self.state.add_pod(self.pod, self.node_name)
        try:
            return self.reserve()
        except PluginError as error:
            self.release()
            return str(error)

    def reserve(self) -> Verdict | None:
        """Let plugins take whatever goes with the node; all of it is given back if one of them refuses."""
        for enabled in self.profile.reservers:
            if enabled.name in self.idle:
                continue
            refused = call_optional(enabled, enabled.plugin.reserve, Refuse, self.pod, self.node_name, self.state)
            if refused is not None:
                self.release()
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    def ask_permits(self) -> Verdict | None:
        """May it go on? Plugins that want it to wait are noted in `permits`."""
        for enabled in self.profile.permitters:
            answer = call(enabled, enabled.plugin.permit, self.pod, self.node_name, Cluster(self.state))
            if answer is None:
                continue
            refused = answer if isinstance(answer, Refuse) else self._made_to_wait(enabled, answer)
            if refused is not None:
                self.release()
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    def _made_to_wait(self, enabled: EnabledPlugin[PermitPlugin], seconds: Any) -> Refuse | None:
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
        if not number:
            raise wrong(enabled, enabled.plugin.permit, seconds, "None, Refuse or seconds to wait were due")
        if seconds <= 0:
            return Refuse((messages.waited(0, enabled.name),))
        self.permits[enabled.name] = min(float(seconds), LONGEST_PERMIT)
        return None

    def pre_bind(self) -> Iterator[tuple[str, Any]]:
        """Actions that must succeed first, each with the plugin that wants it done."""
        for enabled in self.profile.pre_binders:
            if enabled.name in self.idle:
                continue
            cluster = Cluster(self.state)
            for action in call_list(enabled, enabled.plugin.pre_bind, AnyAction, self.pod, self.node_name, cluster):
                if isinstance(action, Patch):
                    self.state.assumed.written(action.kind, action.key, self.uid)
                yield enabled.name, action

    @property
    def awaiting(self) -> list[EnabledPlugin[PreBoundPlugin]]:
        """The plugins that may make it wait for what their actions began."""
        return [enabled for enabled in self.profile.pre_bind_waiters if enabled.name not in self.idle]

    def pre_bound(self, enabled: EnabledPlugin[PreBoundPlugin]) -> bool | NotYet | Refuse:
        """Is there what one of the plugins asked for?"""
        answer = call(enabled, enabled.plugin.pre_bound, self.pod, self.node_name, Cluster(self.state))
        if not isinstance(answer, bool | NotYet | Refuse):
            raise wrong(enabled, enabled.plugin.pre_bound, answer, "a bool, NotYet or Refuse was due")
        return answer

    def bind(self) -> Any | None:
        """The binding, by the first plugin that wants to do it."""
        for enabled in self.profile.binders:
            action = call_optional(enabled, enabled.plugin.bind, AnyAction, self.pod, self.node_name)
            if action is not None:
                return action
        return None

    def siblings(self) -> list[str]:
        """Uids of pods that plugins want tried, now that this one has come so far."""
        cluster = Cluster(self.state)
        found = (call_list(each, each.plugin.siblings, str, self.pod, cluster) for each in self.profile.sibling_plugins)
        return [uid for uids in found for uid in uids]

    def post_bind(self) -> Iterator[Any]:
        for enabled in self.profile.post_binders:
            cluster = Cluster(self.state)
            yield from call_list(enabled, enabled.plugin.post_bind, AnyAction, self.pod, self.node_name, cluster)

    def release(self) -> list[tuple[Object, Object]]:
        """Give back what was reserved, the last first; then the node's room, unless it is somebody else's by now.

        The answer: objects that were assumed to be otherwise, before and after.
        """
        book = self.state.assumed
        held = [each for each in book.by(self.uid) if book.pending(each)]
        for enabled in self.profile.unreservers:
            with suppress(PluginError):  # the others must have their turn, and the room must be given back
                call(enabled, enabled.plugin.unreserve, self.pod, self.node_name, self.state)
        placed = self.state.pods.get(self.uid)
        if placed is not None and placed.pod is self.pod:
            self.state.remove_pod(self.uid)
        after = ((each, self.state.store.get(type(each), each.key)) for each in held)
        return [(each, now) for each, now in after if now is not None]


def assumed(pod: Pod, node_name: str) -> Pod:
    """The pod as it will be once it is bound."""
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    made = msgspec.structs.replace(pod, spec=spec)
    if "shape" in pod.__dict__:
        made.__dict__["shape"] = pod.__dict__["shape"]  # where a pod is, is not part of its shape
    return made
