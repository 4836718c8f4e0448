"""Records of kube-scheduler's decisions about resource claims: our answer in the records' own form.

They are records of nodes (`node_records`) and say more:

    allocations   which devices the pod's claims get on each feasible node
    bind          the calls that write that for the best node, in order; what is taken back if one fails
    postFilter    what is deallocated if no node is feasible
    error         the texts of which the scheduler reports one, if a node ends the decision in an error
    hints         whether each event is a reason to try the pod again

`earlier` in a record are pods that the same scheduler placed before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np

from stowplan.apps.parity import node_records
from stowplan.apps.parity.claim_server import NOW, ClaimServer, without_dumps
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision, NotYet, RejectPod
from stowplan.framework.evaluation import Evaluation, schedule_one
from stowplan.objects import kinds, quantity
from stowplan.objects.actions import AllocateClaims, AnyAction, Record
from stowplan.objects.changes import Put
from stowplan.objects.errors import StowplanError
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.plugins.nodes.default.device_claims.planner import PlannedClaim
from stowplan.plugins.nodes.default.dynamic_resources import NAME, DynamicResources

Answer: TypeAlias = dict[str, Any]


def is_record(scenario: Mapping[str, Any]) -> bool:
    """True for a record about devices. The sample of them among the records of nodes has no allocations."""
    lists = ("deviceClasses", "resourceClaims", "resourceSlices")
    return any(scenario["cluster"].get(name) for name in lists) and scenario.get("category") != "dynamic-resources"


def answer(scenario: Mapping[str, Any]) -> Answer:
    """Return our complete answer, in the form of a record's `expect`."""
    return ClaimScheduler(scenario).answer()


class ClaimScheduler:
    """A scheduler that has seen the cluster of one record."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        lists = scenario["cluster"]
        self._input = json.dumps(lists)
        self._earlier, self._events = scenario.get("earlier") or (), scenario.get("events")
        self._state = ClusterState()
        self._state.clock_began = NOW.timestamp()
        others = [earlier["pod"] for earlier in self._earlier]
        self._server = ClaimServer(lists, [*others, scenario["pod"]], self._state.apply)
        node_records.fill(self._state, {name: each for name, each in lists.items() if name != "resourceClaims"})
        self._pod = kinds.convert(Pod, scenario["pod"])
        self._profile = node_records.profile_of(self._pod, scenario.get("config"))
        self._profile.attach(self._state)
        self._cluster = Cluster(self._state)

    @property
    def _plugin(self) -> DynamicResources:
        found = self._profile.plugin(NAME)
        if not isinstance(found, DynamicResources):
            raise StowplanError(f"the profile does not have {NAME}")
        return found

    def answer(self) -> Answer:
        for earlier in self._earlier:
            self._place(earlier)
        if self._events is not None:
            return {"prefilter": None, "filter": {}, "scores": {}, "hints": list(self._hints(self._events))}
        decision = schedule_one(self._pod, self._state, self._profile)
        if decision.failure is not None:
            raise StowplanError(decision.error)
        if decision.error:
            return self._ended_in_an_error()
        found = node_records.judged(decision, self._state, self._profile)
        feasible = [name for name, verdict in decision.trail.rejections() if verdict is None] if found["filter"] else []
        if feasible:
            found["allocations"] = {name: self._allocations(self._pod, name) for name in feasible}
        if "best" in found:
            found["bind"] = self._bind(self._pod, found["best"][0])
        elif "message" in found and len(decision.trail.names):
            found["postFilter"] = self._post_filter(decision)
        return found

    # -- devices

    def _allocations(self, pod: Pod, node: str) -> list[Answer]:
        pins = Pins(self._input)
        return [_planned(each, pins) for each in self._plugin.allocations(pod, node, Cluster(self._state))]

    def _ended_in_an_error(self) -> Answer:
        """Judge each node alone, since one of them ends the decision about all."""
        found: Answer = {"prefilter": None, "filter": {}, "scores": {}}
        texts: set[str] = set()
        for name in list(self._state.table.live_names()):
            row = self._state.table.row_of[name]
            alone = np.array([row], np.int64)
            decision = schedule_one(self._pod, self._state, self._profile, gate=False, preempt=False, within=alone)
            if decision.limited_to is not None:
                found["prefilterNodes"] = sorted(decision.limited_to)
            if decision.error:
                texts.add(decision.error)
                found["filter"][name] = {"plugin": NAME, "code": "Error", "reasons": [decision.error]}
            else:
                found["filter"] |= {each: node_records.verdict_of(its) for each, its in decision.trail.rejections()}
        feasible = [name for name, verdict in found["filter"].items() if verdict is None]
        if feasible:
            found["allocations"] = {name: self._allocations(self._pod, name) for name in feasible}
        return {**found, "error": {"anyOf": sorted(texts)}}

    # -- writes

    def _bind(self, pod: Pod, node: str) -> Answer:
        """Reserve the node, write the claims, and say whether the pod could be bound."""
        found: Answer = {"node": node}
        self._server.taken()
        rejected = self._plugin.reserve(pod, node, self._cluster)
        if rejected is not None:
            raise StowplanError(f"{node} cannot be reserved: {', '.join(rejected.reasons)}")
        error, events = self._write(self._plugin.pre_bind(pod, node, self._cluster))
        pins = Pins(self._input)
        found["calls"] = pins.pinned(self._server.taken())
        if events:
            found["events"] = events
        ready = RejectPod((error,)) if error else self._plugin.pre_bound(pod, node, self._cluster)
        if isinstance(ready, NotYet):
            found["waiting"] = True
        elif isinstance(ready, RejectPod):
            found["error"] = without_dumps(", ".join(ready.reasons))
            self._write(self._plugin.undo_pre_bind(pod, node, self._cluster))
            self._plugin.unreserve(pod, node, self._cluster)
            undone = pins.pinned(self._server.taken())
            found |= {"unreserve": undone} if undone else {}
        return found

    def _write(self, actions: Iterator[AnyAction]) -> tuple[str, list[str]]:
        """Carry out actions up to the first that fails: return why, and the events."""
        events: list[str] = []
        for action in actions:
            if isinstance(action, Record):
                events.append(f"{action.type} {action.reason} {action.note}")
                continue
            outcome = self._server.carry_out(action)  # type: ignore[arg-type]
            if isinstance(action, AllocateClaims) and not 200 <= outcome.status < 300:
                return outcome.message, events
        return "", events

    def _post_filter(self, decision: Decision) -> Answer:
        evaluation = Evaluation(self._pod, self._state, self._profile)
        evaluation.pre_filter()
        result = self._plugin.post_filter(self._pod, decision, evaluation)
        code = "Error" if result.settles else "Unschedulable"
        choices = []
        for action in self._plugin.deallocations(self._pod, decision, self._cluster) if result.actions else ():
            self._server.carry_out(action)
            choices.append(Pins(self._input).pinned(self._server.taken()))
        return {"code": code, "reason": ", ".join(result.reasons), "oneOf": sorted(choices, key=json.dumps) or [[]]}

    # -- what was before, and what happens

    def _place(self, earlier: Mapping[str, Any]) -> None:
        """Place an earlier pod where the record says, if that is where we place it."""
        pod = kinds.convert(Pod, earlier["pod"])
        decision = schedule_one(pod, self._state, self._profile)
        if decision.failure is not None:
            raise StowplanError(decision.error)
        best = sorted(decision.trail.best())
        node = best[0] if best else None
        ours = {"node": node, "allocations": [] if node is None else self._allocations(pod, node)}
        recorded = {name: earlier.get(name, ours[name]) for name in ours}
        if comparable(ours) != comparable(recorded) or node is None:
            raise StowplanError(f"the earlier pod {pod.name}: {json.dumps(ours)}; recorded: {json.dumps(recorded)}")
        if earlier["stage"] == "bound":
            bound = self._bind(pod, node)
            if "error" in bound or "waiting" in bound:
                raise StowplanError(f"the earlier pod {pod.name} cannot be bound: {bound}")
        else:
            self._plugin.reserve(pod, node, self._cluster)
        placed = {**earlier["pod"], "spec": {**earlier["pod"]["spec"], "nodeName": node}}
        self._state.apply(Put(kinds.convert(Pod, placed)))

    def _hints(self, events: list[Mapping[str, Any]]) -> Iterator[str]:
        for event in events:
            old: Any = None
            restore = None
            if event["kind"] == "ResourceClaim":
                old = None if "old" not in event else kinds.convert(ResourceClaim, event["old"])
                new: Any = kinds.convert(ResourceClaim, event["new"])
                restore = self._server.replace(event["new"])
            else:
                new = kinds.convert(Pod, event["new"])
            yield "Queue" if self._helps(event["kind"], old, new) else "QueueSkip"
            if restore is not None:
                restore()

    def _helps(self, kind: str, old: Any, new: Any) -> bool:
        action = "UpdatePodGeneratedResourceClaim" if kind == "Pod" else "Add" if old is None else "Update"
        wakes = (wake for wake in self._plugin.wakes_on() if wake.resource == kind and action in wake.actions)
        return any(wake.helps(self._plugin, self._pod, old, new, self._cluster) for wake in wakes)


class Pins:
    """Replaces what differs from run to run, in the order of appearance: shares and stamps that the input has not."""

    def __init__(self, known: str) -> None:
        self._known, self._shares = known, dict[str, str]()

    def pinned(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.pinned(each) for each in value]
        if isinstance(value, dict):
            found = {key: self._pin(key, value[key]) for key in sorted(value)}
            return {key: found[key] for key in value}
        return value

    def _pin(self, key: str, value: Any) -> Any:
        if not isinstance(value, str) or key not in ("shareID", "allocationTimestamp") or f'"{value}"' in self._known:
            return self.pinned(value)
        if key == "allocationTimestamp":
            return "now"
        return self._shares.setdefault(value, f"share-{len(self._shares) + 1}")


def comparable(value: Any, key: str = "") -> Any:
    """Return a value such that equal ones mean the same: capacities are amounts, and some lists are sets."""
    if key == "consumedCapacity" and isinstance(value, dict):
        return {name: quantity.nanos(amount) for name, amount in value.items()}
    if isinstance(value, dict):
        return {name: comparable(each, name) for name, each in value.items()}
    if isinstance(value, list):
        found = [comparable(each) for each in value]
        return sorted(found, key=json.dumps) if key in ("anyOf", "oneOf") else found
    return value


def differences(expected: object, found: object) -> Iterator[tuple[str, object, object]]:
    """Yield all fields in which two answers differ: (path, expected, found)."""
    return node_records.differences(comparable(expected), comparable(found))


def _planned(planned: PlannedClaim, pins: Pins) -> Answer:
    found: Answer = {"claim": planned.key}
    if planned.of_extended_resources:
        found["requests"] = [_plain(each) for each in planned.requests] or None
        if planned.mappings:
            found["mappings"] = [_plain(each) for each in planned.mappings]
    return {**found, "allocation": pins.pinned(_plain(planned.allocation))}


def _plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
