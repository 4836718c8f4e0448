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
from stowplan.framework.plugin_calls import ask, ask_list, expect
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
        for bound in self.profile.reserving:
            if bound.name in self.idle:
                continue
            refused = expect(bound, "reserve", Refuse, ask(bound, "reserve", self.pod, self.node_name, self.state))
            if refused is not None:
                self.release()
                return Verdict(bound.name, refused.code, refused.reasons)
        return None

    def ask_permits(self) -> Verdict | None:
        """May it go on? Plugins that want it to wait are noted in `permits`."""
        for bound in self.profile.at("permit"):
            answer = ask(bound, "permit", self.pod, self.node_name, Cluster(self.state))
            if answer is None:
                continue
            refused = answer if isinstance(answer, Refuse) else self._made_to_wait(bound, answer)
            if refused is not None:
                self.release()
                return Verdict(bound.name, refused.code, refused.reasons)
        return None

    def _made_to_wait(self, bound: EnabledPlugin, seconds: Any) -> Refuse | None:
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
        if not number:
            raise PluginError(bound.name, "permit", f"answered {seconds!r}; None, Refuse or seconds to wait were due")
        if seconds <= 0:
            return Refuse((messages.waited(0, bound.name),))
        self.permits[bound.name] = min(float(seconds), LONGEST_PERMIT)
        return None

    def pre_bind(self) -> Iterator[tuple[str, Any]]:
        """Actions that must succeed first, each with the plugin that wants it done."""
        for bound in self.profile.pre_binding:
            if bound.name in self.idle:
                continue
            for action in ask_list(bound, "pre_bind", AnyAction, self.pod, self.node_name, Cluster(self.state)):
                if isinstance(action, Patch):
                    self.state.assumed.mark_written(action.kind, action.key, self.uid)
                yield bound.name, action

    @property
    def awaiting(self) -> list[EnabledPlugin]:
        """The plugins that may make it wait for what their actions began."""
        return [bound for bound in self.profile.awaiting if bound.name not in self.idle]

    def pre_bound(self, bound: EnabledPlugin) -> bool | NotYet | Refuse:
        """Is there what one of the plugins asked for?"""
        answer = ask(bound, "pre_bound", self.pod, self.node_name, Cluster(self.state))
        if not isinstance(answer, bool | NotYet | Refuse):
            raise PluginError(bound.name, "pre_bound", f"answered {answer!r}; a bool, NotYet or Refuse was due")
        return answer

    def bind(self) -> Any | None:
        """The binding, by the first plugin that wants to do it."""
        for bound in self.profile.at("bind"):
            action = expect(bound, "bind", AnyAction, ask(bound, "bind", self.pod, self.node_name))
            if action is not None:
                return action
        return None

    def siblings(self) -> list[str]:
        """Uids of pods that plugins want tried, now that this one has come so far."""
        cluster = Cluster(self.state)
        return [uid for each in self.profile.activators for uid in ask_list(each, "siblings", str, self.pod, cluster)]

    def post_bind(self) -> Iterator[Any]:
        for bound in self.profile.at("postBind"):
            yield from ask_list(bound, "post_bind", AnyAction, self.pod, self.node_name, Cluster(self.state))

    def release(self) -> list[tuple[Object, Object]]:
        """Give back what was reserved, the last first; then the node's room, unless it is somebody else's by now.

        The answer: objects that were assumed to be otherwise, before and after.
        """
        objects = self.state.assumed
        held = [each for each in objects.taken_by(self.uid) if objects.unconfirmed(each)]
        for bound in reversed(self.profile.at("reserve")):
            if hasattr(bound.plugin, "unreserve"):
                with suppress(PluginError):  # the others must have their turn, and the room must be given back
                    ask(bound, "unreserve", self.pod, self.node_name, self.state)
        placed = self.state.pods.get(self.uid)
        if placed is not None and placed.pod is self.pod:
            self.state.remove_pod(self.uid)
        after = ((each, self.state.store.get(type(each), each.key)) for each in held)
        return [(each, now) for each, now in after if now is not None]


def assumed(pod: Pod, node_name: str) -> Pod:
    """The pod as it will be once it is bound."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
