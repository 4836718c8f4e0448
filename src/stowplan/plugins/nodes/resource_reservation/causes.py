"""Why an application has no room, or a driver or executor must wait: the application, and which room it lacks."""

from __future__ import annotations

from stowplan.framework.causes import Cause, Detail
from stowplan.objects.applications import identity
from stowplan.objects.pods import Pod
from stowplan.objects.spark import Executors


def application(pod: Pod) -> str:
    return f"application {identity(pod).application or identity(pod).group or pod.name}"


def no_room(pod: Pod, needs: Executors, beside: int | None, without: int) -> Cause:
    """`beside`: executors that fit beside the driver (None: it has no node); `without`: that fit without it."""
    wants = ", ".join(f"{resource} {text}" for resource, text in needs.resources.items())
    of_all = f"of {needs.least} executors ({wants} each)"
    if beside is None:
        text = f"{application(pod)}: no node has room for the driver; without it {without} {of_all} have room"
    elif beside < needs.least:
        text = f"{application(pod)}: there is room for the driver and {beside} {of_all}"
    else:
        text = f"{application(pod)}: with the driver here its {needs.least} executors ({wants} each) have no room"
    details: dict[str, Detail] = {"executors": needs.least, "fitting": without if beside is None else beside}
    return Cause("reservation-room", text, details | {"each": dict(needs.resources)})


def refused(pod: Pod, code: str, text: str, **details: Detail) -> Cause:
    return Cause(code, f"{application(pod)}: {text}", details)
