"""Groups: their members, what each waits for, and the room that is held for others: reservations and nominations."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from stowplan.apps import json_output
from stowplan.apps.explain.texts import counted
from stowplan.apps.ui.cluster import ClusterModel
from stowplan.apps.ui.markup import Child, Markup, element, fragment
from stowplan.apps.ui.view import Json, View, amount, bar, empty, node_link, part, pod_link, table
from stowplan.engine.groups.group import GroupState
from stowplan.framework.group import UNKNOWN
from stowplan.objects.reservations import ResourceReservation

MOST_ASKED = 30  # groups whose attempt is rehearsed
MOST_GROUPS, MOST_MEMBERS = 200, 50


def read(model: ClusterModel) -> dict[str, Any]:
    """`items` are those of /debug/podgroups, with the members of each group and what it waits for."""
    engine, state = model.snapshot.engine, model.snapshot.state
    listed = json_output.pod_groups(engine.groups, datetime.now(UTC) - timedelta(seconds=time.time()))
    by_name = {each.group.name: each for each in engine.groups}
    asked = 0
    for item in listed["items"]:
        found = by_name[f"{item['namespace']}/{item['name']}"]
        asked += _waits(found)
        del item["lastUpdateTime"]  # this engine attempts nothing, so it says nothing
        item |= _group(model, found, rehearse=asked <= MOST_ASKED)
    held = [{"name": name, "node": node, "amounts": amounts} for name, (node, amounts) in sorted(state.held.items())]
    nominated = [
        {"pod": each.key, "node": node, "priority": each.priority}
        for node, pods in sorted(state.nominated_pods.by_node.items()) for each in pods.values()
    ]  # fmt: skip
    return listed | {
        "enabled": engine.groups.enabled, "now": model.now(), "held": held, "nominated": nominated,
        "reservations": [_reservation(each) for each in model.snapshot.objects.values()
                         if isinstance(each, ResourceReservation)],
    }  # fmt: skip


def _waits(found: GroupState) -> bool:
    return any(pod.pending for pod in found.pods.values())


def _group(model: ClusterModel, found: GroupState, *, rehearse: bool) -> dict[str, Any]:
    waiting = [pod for pod in found.pods.values() if pod.pending and not pod.terminating]
    nodes: dict[str, str | None] = {}
    message = ""
    if waiting and rehearse:
        answer = model.snapshot.answer(waiting[0])
        nodes = answer.group.nodes if answer.group is not None else {}
        message = "" if answer.node is not None else answer.why_not
        message = message or ("All that wait would get nodes now." if answer.group and answer.group.whole else "")
    elif waiting:
        message = f"Not looked at: more than {MOST_ASKED} groups wait."
    members = [
        {
            "pod": pod.key,
            "node": pod.node_name or None,
            "wouldGet": nodes.get(pod.key),
            "terminating": pod.terminating,
        }
        for pod in sorted(found.pods.values(), key=lambda each: each.key)
    ]
    return {
        "minimumKnown": found.group.minimum < UNKNOWN,
        "needed": max(found.group.minimum - found.placed, 0) if found.group.minimum < UNKNOWN else None,
        "placed": found.placed,
        "slots": found.group.slots,
        "resources": found.group.resources,
        "priority": found.group.priority,
        "message": message,
        "members": members,
    }


def _reservation(found: ResourceReservation) -> dict[str, Any]:
    rooms = [
        {"slot": slot, "node": room.node, "amounts": room.quantities, "pod": found.status.pods.get(slot, "")}
        for slot, room in found.spec.reservations.items()
    ]
    return {"name": found.key, "slots": rooms}


def show(data: Json) -> View:
    groups = data["items"]
    parts: dict[str, Markup] = {"summary": _summary(data)}
    waiting = [each for each in groups if each["waitingPods"]]
    placed = [each for each in groups if not each["waitingPods"]]
    if waiting:
        parts["waiting-groups"] = part("Groups that wait", *(_card(each) for each in waiting[:MOST_GROUPS]))
    if placed:
        parts["complete"] = part("Groups with nodes", _complete(placed))
    parts["held"] = part("Room that is held", *_held(data))
    return View("Groups", parts)


def _summary(data: Json) -> Markup:
    groups = data["items"]
    if groups:
        waiting = sum(1 for each in groups if each["waitingPods"])
        return element("p", f"{counted(len(groups), 'group')}, of which {waiting:,} wait for nodes.", class_="sentence")
    if not data["enabled"]:
        return empty("No plugin of the configuration knows groups: Coscheduling does, and --config can enable it.")
    return empty("No pod belongs to a group.")


def _card(found: Json) -> Markup:
    placed, minimum = found["placed"], found["minAvailable"]
    told = f"{placed} of {minimum} needed pods have a node" if found["minimumKnown"] else "its minimum is not known"
    percent = 100 * placed / minimum if found["minimumKnown"] and minimum else 0
    slots = f", {found['slots']} of them are slots that are held" if found["slots"] else ""
    return element(
        "article",
        element("h3", f"{found['namespace']}/{found['name']}"),
        element("p", bar(percent, "f1", told), f" {told}{slots}; {counted(found['waitingPods'], 'pod')} waiting."),
        element("p", found["message"], class_="sentence") if found["message"] else None,
        _members(found["members"]),
        class_="card",
    )


def _members(members: list[Json]) -> Markup:
    rows = [
        (pod_link(each["pod"]), node_link(each["node"]) if each["node"] else "waits",
         node_link(each["wouldGet"]) if each["wouldGet"] else "")
        for each in members[:MOST_MEMBERS]
    ]  # fmt: skip
    rest = len(members) - MOST_MEMBERS
    more = element("p", f"… and {rest:,} more", class_="note") if rest > 0 else None
    return fragment(table(("member", "node", "would get, together with the others"), rows), more)


def _complete(groups: list[Json]) -> Markup:
    rows = [
        (f"{each['namespace']}/{each['name']}", f"{each['placed']:,}", f"{each['minAvailable']:,}",
         pod_link(each["members"][0]["pod"]) if each["members"] else "")
        for each in groups[:MOST_GROUPS]
    ]  # fmt: skip
    return table(("group", "pods with a node", "needed", "one of them"), rows, numbers=[1, 2])


def _held(data: Json) -> Iterator[Child]:
    if not (data["held"] or data["nominated"] or data["reservations"]):
        yield empty("No room is held for anybody.")
        return
    rows: list[Sequence[Child]]
    if data["reservations"]:
        rows = [
            (each["name"], slot["slot"], node_link(slot["node"]) if slot["node"] else "",
             ", ".join(f"{name} {value}" for name, value in slot["amounts"].items()), slot["pod"] or "free")
            for each in data["reservations"] for slot in each["slots"]
        ]  # fmt: skip
        yield element("h3", "Reservations")
        yield table(("reservation", "slot", "node", "room", "taken by"), rows)
    if data["held"]:
        rows = [
            (each["name"], node_link(each["node"]),
             ", ".join(f"{name} {amount(name, value)}" for name, value in each["amounts"].items()))
            for each in data["held"]
        ]  # fmt: skip
        yield element("h3", "Held on nodes now")
        yield table(("for", "node", "room"), rows)
    if data["nominated"]:
        rows = [(pod_link(each["pod"]), node_link(each["node"]), f"{each['priority']}") for each in data["nominated"]]
        yield element("h3", "Nominations: others are evicted for these pods")
        yield table(("pod", "node", "priority"), rows, numbers=[2])
