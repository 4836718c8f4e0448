"""The other methods of one plugin in one situation: each is called as the engine calls it, and its answer checked.

Not called are those that need a whole scheduler: post_filter, bind, pre_bound, reconcile, recount and a few more
(`NOT_CALLED`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import msgspec
import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.checks import bindings
from stowplan.framework.checks.answers import Asked
from stowplan.framework.checks.called_plugin import BrokenAnswer, Problem
from stowplan.framework.cluster_event import ASSIGNED, UNSCHEDULED
from stowplan.framework.decision import Avoid, RejectPod
from stowplan.framework.extension_points import CALLED
from stowplan.framework.group import Group
from stowplan.framework.interfaces import Gauge, QueueEntry, Wake
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

CHECKED = (
    *("pre_enqueue", "sort_key", "cluster_key", "group_of", "pre_filter", "filter", "avoid", "score", "reserve"),
    *("unreserve", "permit", "pre_bind", "post_bind", "gauges", "wakes_on", "filters_by_row"),
    *("fits", "rate", "pre_filters_by_shape", "causes", "pod_causes"),
)
Check: TypeAlias = Callable[[Asked, Cluster], Iterator[Problem]]
NOT_CALLED = tuple(method for method in CALLED if method not in CHECKED)


def problems_of_methods(asked: Asked, wakes: Iterable[Wake]) -> Iterator[Problem]:
    """Yield what is wrong with the answers of the methods that are not about single nodes."""
    cluster = Cluster(asked.state())
    checks: list[Check] = [
        lambda asked, cluster: _optional(asked, "pre_enqueue", RejectPod, cluster),
        lambda asked, cluster: _optional(asked, "avoid", Avoid, cluster),
        _group,
        _keys,
        _gauges,
        lambda asked, _: bindings.undone(asked),
        lambda asked, _: bindings.bound(asked),
        lambda asked, _: bindings.overlapping(asked),
    ]
    for check in checks:
        yield from _unbroken(check, asked, cluster)
    if asked.has("reserve"):
        yield from _unbroken(_with_reservations, asked, cluster)
    for wake in wakes:
        if wake.hint and asked.has(wake.hint):
            yield from _hint(asked, wake)


def _unbroken(check: Check, asked: Asked, cluster: Cluster) -> Iterator[Problem]:
    try:
        yield from check(asked, cluster)
    except BrokenAnswer as broken:
        yield broken.args


def _with_reservations(asked: Asked, _: Cluster) -> Iterator[Problem]:
    """Ask again while the reservations of other pods stand."""
    with bindings.remembering(asked) as remembering:
        cluster = Cluster(remembering.state())
        checks: list[Iterator[Problem]] = [
            remembering.problems_of_answers(None),
            _optional(remembering, "pre_enqueue", RejectPod, cluster),
            _optional(remembering, "avoid", Avoid, cluster),
            _gauges(remembering, cluster),
            bindings.bound(remembering),
        ]
        for what, example in chain.from_iterable(checks):
            yield what, f"{example}, while other pods are reserved"


def _optional(asked: Asked, method: str, kind: type, cluster: Cluster) -> Iterator[Problem]:
    if not asked.has(method):
        return
    call = getattr(asked.plugin, method)
    answer = asked.ask(method, lambda: call(asked.pod, cluster))
    asked.says.note(method, answer is not None)
    if answer is not None and not isinstance(answer, kind):
        yield f"{method} gives a wrong answer", f"{answer!r}; {kind.__name__} or None was due"
    elif asked.ask(method, lambda: call(asked.pod, cluster)) != answer:
        yield f"{method} gives two answers to one question", f"first {answer!r}"
    elif method == "pre_enqueue" and answer is not None:
        asked.check_pod_causes(method, cluster)


def _group(asked: Asked, cluster: Cluster) -> Iterator[Problem]:
    yield from _optional(asked, "group_of", Group, cluster)
    if asked.has("group_of") and len(cluster.nodes):
        spec = msgspec.structs.replace(asked.pod.spec, node_name=cluster.nodes.names[0])
        placed = msgspec.structs.replace(asked.pod, spec=spec)
        without, there = (
            asked.ask("group_of", partial(asked.plugin.group_of, pod, cluster)) for pod in (asked.pod, placed)
        )
        if without != there:
            yield "group_of depends on the pod's node", f"{without!r}, and with a node {there!r}"


def _keys(asked: Asked, cluster: Cluster) -> Iterator[Problem]:
    """Keys of two pods can be compared, and one pod's key stays the same."""
    other = asked.situation.placed[0] if asked.situation.placed else asked.pod
    for method in ("sort_key", "cluster_key"):
        if not asked.has(method):
            continue
        mine, again, its = (_key(asked, method, *each, cluster) for each in ((asked.pod, 1.0),) * 2 + ((other, 2.0),))
        try:
            asked.says.note(method, bool(mine < its or its < mine))
        except Exception as error:
            yield f"{method} gives keys that cannot be compared", f"{type(error).__name__}: {error}"
        if mine != again:
            yield f"{method} gives two answers to one question", f"{mine!r}, and then {again!r}"


def _key(asked: Asked, method: str, pod: Pod, queued_at: float, cluster: Cluster) -> Any:
    if method == "sort_key":
        return asked.ask(method, lambda: asked.plugin.sort_key(pod, queued_at))
    return asked.ask(method, lambda: asked.plugin.cluster_key(QueueEntry(pod, queued_at), cluster))


def _gauges(asked: Asked, cluster: Cluster) -> Iterator[Problem]:
    if not asked.has("gauges"):
        return
    found = asked.ask("gauges", lambda: list(asked.plugin.gauges(cluster)))
    asked.says.note("gauges", bool(found))
    for each in found:
        if not isinstance(each, Gauge):
            yield "gauges gives a wrong answer", f"{each!r}; only Gauge is right"
        elif isinstance(each.value, bool) or not isinstance(each.value, int | float | np.number):
            yield f"the gauge {each.name} is no number", repr(each.value)


# -- hints


def _hint(asked: Asked, wake: Wake) -> Iterator[Problem]:
    """Ask a hint about each event that the situation has for it."""
    in_cluster = wake.hint in getattr(asked.plugin, "hints_in_cluster", ())
    more = (Cluster(asked.state()),) if in_cluster else ()
    for old, new in _events(wake, asked):
        try:
            answer = asked.ask(wake.hint, partial(getattr(asked.plugin, wake.hint), asked.pod, old, new, *more))
        except BrokenAnswer as broken:
            yield broken.args
            continue
        asked.says.note(wake.hint, bool(answer))
        if not isinstance(answer, bool | np.bool_):
            yield f"{wake.hint} gives a wrong answer", f"{answer!r}; True or False was due"


def _events(wake: Wake, asked: Asked) -> Iterator[tuple[Object | None, Object | None]]:
    situation = asked.situation
    objects: list[Object] = [each for each in situation.others if type(each).__name__ == wake.resource]
    if wake.resource in ("Node", "*"):
        objects += situation.nodes
    if wake.own or wake.resource in ("Pod", UNSCHEDULED, "*"):
        objects.append(asked.pod)
    if not wake.own and wake.resource in ("Pod", ASSIGNED, "*"):
        objects += situation.placed
    every = "*" in wake.actions
    for each in objects:
        before = next((other for other in objects if other is not each and type(other) is type(each)), each)
        if every or "Add" in wake.actions:
            yield None, each
        if every or any(action.startswith("Update") for action in wake.actions):
            yield _renamed(before, each), each
        if every or "Delete" in wake.actions:
            yield each, None


def _renamed(before: Object, now: Object) -> Object:
    """Return another object of the kind as an earlier version of this one."""
    return now if before is now else msgspec.structs.replace(before, metadata=_metadata(before, now))


def _metadata(before: Object, now: Object) -> Any:
    own = now.metadata
    return msgspec.structs.replace(before.metadata, name=own.name, namespace=own.namespace, uid=own.uid)
