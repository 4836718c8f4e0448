"""Single fields of the pod: scheduling gates, the node that it names, host ports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.diagnosis.case import Case, Offer, combined
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.objects.pods import Pod
from stowplan.objects.shape import ANY_ADDRESS
from stowplan.plugins.nodes.default.node_name import NodeName
from stowplan.plugins.nodes.default.node_ports import NodePorts

GATE, NODE_NAME, HOST_PORT = "remove-gates", "drop-node-name", "host-port"
_HIGHEST_PORT = 65_535


def gates(pod: Pod) -> Edit | None:
    """Return the edit that removes the scheduling gates; None if the pod has none."""
    names = [gate.name for gate in pod.spec.scheduling_gates]
    if not names:
        return None
    text = f"remove the scheduling gate{'s' if len(names) > 1 else ''} {', '.join(names)}"
    operations = [Operation("remove", pointer("spec", "schedulingGates", at)) for at in range(len(names))]
    return Edit(GATE, text, (PatchObject("Pod", pod.key, tuple(operations)),))


def offers(case: Case) -> Iterator[Offer]:
    for enabled in case.profile.filters:
        rejected = case.rejects(enabled.name)
        if rejected is None:
            continue
        if isinstance(enabled.plugin, NodeName):
            text = f"let the pod name no node: {case.pod.node_name} is not feasible"
            edit = case.edit(NODE_NAME, text, Operation("remove", "/spec/nodeName"))
            yield Offer(enabled.name, case.steps(rejected, 1), lambda _, edit=edit: [edit])  # type: ignore[misc]
        elif isinstance(enabled.plugin, NodePorts):
            yield _ports(case, enabled.name, rejected)


# -- host ports

_Place = tuple[str, int, int, str, str, int]  # field, container, port; address, protocol, number


def _ports(case: Case, plugin: str, rejected: Bools) -> Offer:
    places = list(_host_ports(case))
    taken = [_taken(case, place[3:]) for place in places]
    number = np.sum(taken, axis=0)

    def edits(at: int) -> list[Edit]:
        own = {place[4:] for place in places}
        found = []
        for place, there in zip(places, taken, strict=True):
            if there[at]:
                found.append(_other_port(case, place, at, own))
        return found

    return Offer(plugin, case.steps(rejected, number), edits, alike=combined(*taken))


def _host_ports(case: Case) -> Iterator[_Place]:
    spec = case.pod.spec
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for at, container in enumerate(containers):
            if field == "containers" or container.sidecar:
                for place, port in enumerate(container.ports):
                    if port.host_port > 0:
                        yield field, at, place, port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port


def _taken(case: Case, port: tuple[str, str, int]) -> Bools:
    address, protocol, number = port
    taken = np.zeros(len(case.nodes), np.bool_)
    for other in ("*",) if address == ANY_ADDRESS else (ANY_ADDRESS, address):
        tally = case.nodes.used(("port", protocol, number, other))
        if tally is not None:
            taken |= case.nodes.counts_of(tally) > 0
    return taken


def _other_port(case: Case, place: _Place, at: int, own: set[tuple[str, int]]) -> Edit:
    """Return the edit to the next port that is free on the node."""
    field, container, index, address, protocol, number = place
    candidates = (*range(number + 1, _HIGHEST_PORT + 1), *range(number - 1, 0, -1))
    free = next(
        port for port in candidates if (protocol, port) not in own and not _taken(case, (address, protocol, port))[at]
    )
    own.add((protocol, free))
    path = ("spec", field, container, "ports", index)
    operations = [Operation("replace", pointer(*path, "hostPort"), free)]
    if case.pod.spec.host_network:
        operations.append(Operation("replace", pointer(*path, "containerPort"), free))
    return case.edit(HOST_PORT, f"use host port {free} instead of {number}", *operations)
