"""Pods and pod templates: containers, resources, volumes, and the fields that an update may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, invalid_value, required, unsupported
from stowplan.embedded.validation import resource_names
from stowplan.embedded.validation.metadata import check_label_key, check_label_value
from stowplan.objects import quantity

_RESTARTS = ("Always", "OnFailure", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists", "Gt", "Lt")  # the last two by a feature gate, so that messages do not name them
_MOST_PODS_ASK = frozenset(("cpu", "memory", "ephemeral-storage"))  # good names, which need no further look
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check(pod: Document) -> Iterator[StatusCause]:
    yield from check_spec(pod["spec"], "spec")


def check_spec(spec: Document, path: str, claimed: frozenset[str] = frozenset()) -> Iterator[StatusCause]:
    """`claimed` are the volumes that the pods will have besides those of the spec."""
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes", ())} | claimed
    names: set[str] = set()
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(list_name, ())):
            yield from _container(container, f"{path}.{list_name}[{index}]", volumes, names)
    if spec.get("restartPolicy") not in _RESTARTS:
        yield unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTARTS)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield invalid_value(
            f"{path}.terminationGracePeriodSeconds", spec["terminationGracePeriodSeconds"], _NOT_NEGATIVE
        )
    yield from _tolerations(spec.get("tolerations", ()), path)
    yield from _spread(spec.get("topologySpreadConstraints", ()), path)


_NOT_NEGATIVE = "must be greater than or equal to 0"


def _container(container: Document, path: str, volumes: set[Any], names: set[str]) -> Iterator[StatusCause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif name in names:
        yield StatusCause(f"{path}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate")
    names.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from check_resources(container.get("resources", {}), f"{path}.resources")
    for index, port in enumerate(container.get("ports", ())):
        yield from _port(port, f"{path}.ports[{index}]")
    mounted: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        yield from _mount(mount, f"{path}.volumeMounts[{index}]", volumes, mounted)


def _mount(mount: Document, path: str, volumes: set[Any], mounted: set[str]) -> Iterator[StatusCause]:
    if not mount.get("name"):
        yield required(f"{path}.name")
    if mount.get("name") not in volumes:
        yield StatusCause(f"{path}.name", f'Not found: "{mount.get("name", "")}"', "FieldValueNotFound")
    where = mount.get("mountPath", "")
    if not where:
        yield required(f"{path}.mountPath")
    elif where in mounted:
        yield invalid_value(f"{path}.mountPath", where, "must be unique")
    mounted.add(where)


def check_resources(resources: Document, path: str) -> Iterator[StatusCause]:
    limits = resources.get("limits", {})
    for amounts in ("limits", "requests"):
        for name, amount in resources.get(amounts, {}).items():
            if name not in _MOST_PODS_ASK:
                yield from resource_names.check_of_container(name, f"{path}.{amounts}[{name}]")
            if quantity.nanos(amount) < 0 or "/" in name:
                yield from resource_names.check_amount(name, amount, f"{path}.{amounts}[{name}]")
    for name, amount in resources.get("requests", {}).items():
        if name in limits and quantity.nanos(amount) > quantity.nanos(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", amount, why)


def _port(port: Document, path: str) -> Iterator[StatusCause]:
    number = port.get("containerPort", 0)
    if not number:
        yield required(f"{path}.containerPort")
    for name in ("containerPort", "hostPort"):
        if port.get(name) and not 0 < port[name] < 65536:
            yield invalid_value(f"{path}.{name}", port[name], "must be between 1 and 65535, inclusive")
    if port.get("protocol") not in _PROTOCOLS:
        yield unsupported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)


def _tolerations(tolerations: list[Document], path: str) -> Iterator[StatusCause]:
    for index, toleration in enumerate(tolerations):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def _toleration(toleration: Document, field: str) -> Iterator[StatusCause]:
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if toleration.get("key"):
        yield from check_label_key(f"{field}.key", toleration["key"])
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{field}.operator", operator, why)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield invalid_value(f"{field}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator not in ("", *_OPERATORS):
        yield unsupported(f"{field}.operator", operator, _OPERATORS[:2])
    elif operator == "Exists" and toleration.get("value"):
        why = "value must be empty when `operator` is 'Exists'"
        yield invalid_value(f"{field}.operator", toleration["value"], why)
    elif operator in ("", "Equal"):
        yield from check_label_value(f"{field}.operator", toleration.get("value", ""))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{field}.effect", effect, _EFFECTS)


def _spread(constraints: list[Document], path: str) -> Iterator[StatusCause]:
    for index, constraint in enumerate(constraints):
        field = f"{path}.topologySpreadConstraints[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            yield invalid_value(f"{field}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{field}.topologyKey", "can not be empty")
        if constraint.get("whenUnsatisfiable") not in ("DoNotSchedule", "ScheduleAnyway"):
            choices = ("DoNotSchedule", "ScheduleAnyway")
            yield unsupported(f"{field}.whenUnsatisfiable", constraint.get("whenUnsatisfiable"), choices)


def check_update(pod: Document, old: Document) -> Iterator[StatusCause]:
    before, after = old["spec"], pod["spec"]
    if before is after or before == after:
        return
    gates = {gate["name"] for gate in before.get("schedulingGates", ())}
    if {gate.get("name") for gate in after.get("schedulingGates", ())} - gates:
        yield forbidden_field("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")
    elif _immutable(after, gated=bool(gates)) != _immutable(before, gated=bool(gates)):
        yield forbidden_field("spec", _CHANGEABLE)
    elif any(toleration not in after.get("tolerations", ()) for toleration in before.get("tolerations", ())):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", why)


def _immutable(spec: Document, *, gated: bool) -> Document:
    """The fields that an update cannot change. While a pod is gated, its node selector and affinity can be changed."""
    free = {"tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates"}
    free |= {"nodeSelector", "affinity"} if gated else set()
    kept = {key: value for key, value in spec.items() if key not in free}
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [{**container, "image": ""} for container in kept[name]]
    return kept
