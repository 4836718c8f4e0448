"""An assumed pod: a pod in its binding cycle, from the decision until the API server shows it bound.

Each step calls the profile's plugins. If a step fails, `release` undoes all of them in reverse order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from contextlib import suppress
from enum import Enum

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.queue.cluster_events import ClusterEvent, pod_left
from stowplan.engine.unit import Unit
from stowplan.framework.decision import NotYet, RejectPod, Verdict
from stowplan.framework.interfaces import PermitPlugin, PreBoundPlugin
from stowplan.framework.plugin_calls import call, call_actions, call_list, call_optional, wrong
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import AllocateClaims, AnyAction, Bind, Patch
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

LONGEST_PERMIT = 900.0  # seconds


class BindStep(Enum):
    RESERVED = "reserved"
    WAITING = "waiting"
    PRE_BINDING = "pre-binding"
    BINDING = "binding"
    BOUND = "bound"  # by the answer to the binding; the watch does not show it yet


class AssumedPod:
    """One pod, the node it was given, and its step in the binding cycle."""

    __slots__ = (
        "announced", "awaited", "bind_together", "idle", "node_name", "permits", "pod", "profile", "seen_bound",
        "state", "step", "uid", "unit", "waits_since",
    )  # fmt: skip

    def __init__(
        self, pod: Pod, node_name: str, unit: Unit, profile: Profile, state: ClusterState, idle: Set[str] = frozenset()
    ) -> None:
        """`idle`: plugins that have nothing to do for this pod."""
        self.pod, self.node_name, self.unit, self.profile, self.state = pod, node_name, unit, profile, state
        self.idle = idle
        self.step = BindStep.RESERVED
        self.uid = pod.uid
        self.permits: dict[str, float] = {}  # plugins that make it wait, and for how many seconds at most
        self.awaited: set[int] = set()  # numbers of actions and reminders that it waits for
        self.bind_together: BindTogether | None = None  # the members of its group that are bound with it
        self.waits_since = 0.0  # since when it waits for permits
        self.announced = False  # the pod's status names the node already
        self.seen_bound = False  # the API server shows the pod on its node, though the binding is not answered yet

    @property
    def can_roll_back(self) -> bool:
        """True until its binding is requested."""
        return self.step not in (BindStep.BINDING, BindStep.BOUND)

    @property
    def leaving(self) -> ClusterEvent:
        """The event that others see if the pod does not get its node."""
        return pod_left(self.pod, self.node_name)

    # -- reserve and permit

    def assume(self) -> Verdict | str | None:
        """Count the pod on its node and let plugins reserve. If that fails, return why; nothing is left of it then."""
        self.state.add_pod(self.pod, self.node_name)
        try:
            return self._reserve()
        except PluginError as error:
            self.release()
            return str(error)

    def _reserve(self) -> Verdict | None:
        cluster = Cluster(self.state)
        for enabled in self.profile.reservers:
            if enabled.name in self.idle:
                continue
            refused = call_optional(enabled, enabled.plugin.reserve, RejectPod, self.pod, self.node_name, cluster)
            if refused is not None:
                self.release()
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    def ask_permits(self) -> Verdict | None:
        """Let plugins permit, refuse, or delay the binding. Those that delay it are in `permits` afterwards."""
        for enabled in self.profile.permitters:
            answer = call(enabled, enabled.plugin.permit, self.pod, self.node_name, Cluster(self.state))
            if answer is None:
                continue
            refused = answer if isinstance(answer, RejectPod) else self._delay(enabled, answer)
            if refused is not None:
                self.release()
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    def _delay(self, enabled: EnabledPlugin[PermitPlugin], seconds: object) -> RejectPod | None:
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not math.isfinite(seconds):
            raise wrong(enabled, enabled.plugin.permit, seconds, "None, RejectPod or seconds to wait were due")
        if seconds <= 0:
            return RejectPod((messages.waited(0, enabled.name),))
        self.permits[enabled.name] = min(float(seconds), LONGEST_PERMIT)
        return None

    # -- pre-bind, bind and post-bind

    def pre_bind(self) -> list[tuple[str, AnyAction]]:
        """Actions that must succeed before the binding, each with the name of its plugin."""
        actions: list[tuple[str, AnyAction]] = []
        for enabled in self.profile.pre_binders:
            if enabled.name in self.idle:
                continue
            cluster = Cluster(self.state)
            for action in call_actions(enabled, enabled.plugin.pre_bind, AnyAction, self.pod, self.node_name, cluster):
                if isinstance(action, Patch):
                    self.state.assumed.mark_written(action.kind, action.key, self.uid)
                elif isinstance(action, AllocateClaims):
                    for each in action.claims:
                        if each.made is None:  # the server makes another object of that one, and never sends its key
                            self.state.assumed.mark_written("ResourceClaim", each.key, self.uid)
                actions.append((enabled.name, action))
        return actions

    @property
    def pre_bind_waiters(self) -> list[EnabledPlugin[PreBoundPlugin]]:
        """The plugins that may delay the binding until their pre-bind actions took effect."""
        return [enabled for enabled in self.profile.pre_bind_waiters if enabled.name not in self.idle]

    def pre_bound(self, enabled: EnabledPlugin[PreBoundPlugin]) -> bool | NotYet | RejectPod:
        """Ask a plugin whether its pre-bind actions took effect."""
        answer: object = call(enabled, enabled.plugin.pre_bound, self.pod, self.node_name, Cluster(self.state))
        if not isinstance(answer, bool | NotYet | RejectPod):
            raise wrong(enabled, enabled.plugin.pre_bound, answer, "a bool, NotYet or RejectPod was due")
        return answer

    def bind(self) -> AnyAction | None:
        """The binding, by the first plugin that wants to bind the pod."""
        for enabled in self.profile.binders:
            action = call_optional(enabled, enabled.plugin.bind, AnyAction, self.pod, self.node_name)
            if action is not None:
                return self._annotated(action)
        return None

    def _annotated(self, action: AnyAction) -> AnyAction:
        """The binding, with the annotations that plugins write along with it."""
        if not isinstance(action, Bind) or not self.profile.binding_annotators:
            return action
        annotations = dict(action.annotations)
        for each in self.profile.binding_annotators:
            if each.name in self.idle:
                continue
            cluster = Cluster(self.state)
            method = each.plugin.binding_annotations
            annotations.update(call_optional(each, method, dict, self.pod, self.node_name, cluster) or {})
        return msgspec.structs.replace(action, annotations=annotations) if annotations else action

    def siblings(self) -> list[str]:
        """Uids of pods that plugins want to be attempted now."""
        cluster = Cluster(self.state)
        found = (call_list(each, each.plugin.siblings, str, self.pod, cluster) for each in self.profile.sibling_plugins)
        return [uid for uids in found for uid in uids]

    def post_bind(self) -> Iterator[AnyAction]:
        """The actions of the post-bind plugins, in order."""
        cluster = Cluster(self.state)
        for enabled in self.profile.post_binders:
            yield from call_actions(enabled, enabled.plugin.post_bind, AnyAction, self.pod, self.node_name, cluster)

    # -- undo

    def undo_pre_bind(self) -> Iterator[AnyAction]:
        """The actions that take back what was written for the pod. Called before `release`."""
        cluster = Cluster(self.state)
        for enabled in self.profile.pre_bind_undoers:
            with suppress(PluginError):
                yield from call_actions(
                    enabled, enabled.plugin.undo_pre_bind, AnyAction, self.pod, self.node_name, cluster
                )

    def release(self) -> list[tuple[Object, Object]]:
        """Undo everything in reverse order, and remove the pod from its node unless it is bound there by now.

        Return the objects that were assumed to be different, before and after.
        """
        assumed_objects = self.state.assumed
        held = [each for each in assumed_objects.taken_by(self.uid) if assumed_objects.unconfirmed(each)]
        cluster = Cluster(self.state)
        for enabled in self.profile.unreservers:
            with suppress(PluginError):  # the other plugins must unreserve, too
                call(enabled, enabled.plugin.unreserve, self.pod, self.node_name, cluster)
        placed = self.state.pods.get(self.uid)
        if placed is not None and placed.pod is self.pod:
            self.state.remove_pod(self.uid)
        after = ((each, self.state.store.get(type(each), each.key)) for each in held)
        return [(each, now) for each, now in after if now is not None]


class BindTogether:
    """Members of a group that are bound together, or not at all. Members may join until the first is bound."""

    def __init__(self) -> None:
        self._waiting: dict[str, AssumedPod] = {}
        self._ready: dict[str, AssumedPod] = {}
        self.reminder = 0  # number of the reminder by which all must be ready

    def __len__(self) -> int:
        return len(self._waiting) + len(self._ready)

    def add(self, assumed_pod: AssumedPod) -> None:
        assumed_pod.bind_together = self
        self._waiting[assumed_pod.uid] = assumed_pod

    def remove(self, assumed_pod: AssumedPod) -> None:
        assumed_pod.bind_together = None
        self._waiting.pop(assumed_pod.uid, None)
        self._ready.pop(assumed_pod.uid, None)

    def set_ready(self, assumed_pod: AssumedPod) -> None:
        self._waiting.pop(assumed_pod.uid, None)
        self._ready[assumed_pod.uid] = assumed_pod

    @property
    def all_ready(self) -> bool:
        return not self._waiting and bool(self._ready)

    @property
    def waiting(self) -> list[AssumedPod]:
        """The members that are not ready."""
        return list(self._waiting.values())

    def release_all(self) -> list[AssumedPod]:
        """The members, which go on by themselves from now on."""
        members = list(self._ready.values())
        for each in members:
            each.bind_together = None
        return members
