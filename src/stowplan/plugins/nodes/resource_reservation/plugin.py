"""ResourceReservation: a Spark driver is scheduled only with room for its executors, and that room is held for them.

    driver     a node is rejected if, with the driver there, the cluster has too little room for the executors that the
               application needs. With the driver's node the executors get slots (`packing`), which are held at once
               (`columns/held/`) and written to a ResourceReservation before the driver is bound
    executor   takes a slot of its application, on the slot's node if possible; without a free slot it is scheduled like
               any pod, up to the driver's maximum
    others     pods with a reservation that a user wrote take its slots the same way

Reservations of deleted drivers are deleted (`reconcile`). The driver's annotations say what executors need, or else
the labels of its group how many there are (`objects/spark.py`). Executors are assumed to have the driver's node
selector, node affinity and tolerations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.held.held_room import FEW, HeldRoom
from stowplan.columns.held.held_slots import HeldSlots
from stowplan.columns.held.source import Slot
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.cluster_event import ClusterEvent
from stowplan.framework.config.document import flag
from stowplan.framework.decision import SKIP, Avoid, Decision, PostFilterResult, Reject, RejectPod, Skip
from stowplan.framework.evaluation import passing
from stowplan.framework.group import SlotPods
from stowplan.framework.interfaces import Evaluator, Gauge, Wake
from stowplan.objects import reservations, spark
from stowplan.objects.actions import Create, Patch, Write
from stowplan.objects.applications import EXECUTOR, identity, is_driver
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import GPU, ResourceReservation, reservation_of
from stowplan.objects.spark import Executors
from stowplan.plugins.nodes.resource_reservation import arguments, causes, documents, events, reconcile
from stowplan.plugins.nodes.resource_reservation.application_fit import ApplicationFit, executor
from stowplan.plugins.nodes.resource_reservation.driver_order import DOES_NOT_FIT, EARLIER, DriverOrder
from stowplan.plugins.nodes.resource_reservation.holdings import ReservationHoldings
from stowplan.plugins.nodes.resource_reservation.reconcile import ReservationReconciler

ZONE = "topology.kubernetes.io/zone"
NO_SPOTS = "application has no free executor spots to schedule this one"
NOT_RESERVED = "node(s) had no place reserved for the pod"
WITH_GPUS = "node(s) had GPUs that the pod does not need"
OTHER_ZONE = "node(s) were in another zone than the driver of the application"


class ResourceReservationPlugin:
    reads = (reservations.KIND,)
    writes: ClassVar = {reservations.KIND: ("status", "create", "patch", "delete")}
    reconciles = (reservations.KIND, "Pod")
    retries_by_object = True
    own_kinds = (reservations.KIND,)
    quick_pre_bind = True
    holds_room = ReservationHoldings()

    def __init__(
        self,
        packing: str = "evenly",
        single_zone: bool = False,
        zone_label: str = ZONE,
        gpu_resources: Sequence[str] = (GPU,),
        fifo: bool = False,
        enforce_after_pod_age_seconds: int = 0,
        executors_from_group: bool = True,
        executor_resources: Mapping[str, str | int | float] | None = None,
    ) -> None:
        """`packing` also accepts Palantir's names; `enforceAfterPodAgeSeconds` is for `fifo` only.

        `executorsFromGroup`: a driver without annotations, in a group by labels, announces the others of the group's
        number. Each of them requests `executorResources`, or as much as the driver.
        """
        strategy, in_zone = arguments.strategy(packing)
        in_zone = flag("singleZone", single_zone) or in_zone
        self._zone = arguments.label(zone_label) if in_zone else ""
        self._fit = ApplicationFit(strategy, self._zone, arguments.resources(gpu_resources))
        self._driver_order = (
            DriverOrder(self._fit, arguments.seconds(enforce_after_pod_age_seconds), self._executors)
            if flag("fifo", fifo)
            else None
        )
        self._from_group = flag("executorsFromGroup", executors_from_group)
        self._executor_resources = arguments.executor_resources(executor_resources or {})
        self._reconciler = ReservationReconciler()
        self._open: tuple[str, Ints] = ("", np.zeros(0, np.int64))  # nodes for executors of the last driver
        self._before: dict[str, ResourceReservation | None] = {}  # the reservation before, by the driver's uid

    def _executors(self, pod: Pod) -> Executors | None:
        """Return the executors of a driver; None for other pods, and for drivers of which nothing is known."""
        if not pod.metadata.labels:
            return None
        found = spark.executors(pod)
        return spark.of_group(pod, self._executor_resources) if found is None and self._from_group else found

    def slot_pods(self, pod: Pod, cluster: Cluster) -> SlotPods | None:  # noqa: ARG002
        """Return the executors that a driver needs."""
        needs = self._executors(pod)
        if needs is None or needs.problem or not needs.least:
            return None
        return SlotPods(executor(pod, needs), needs.least)

    def slots_of(self, pod: Pod, cluster: Cluster) -> int:
        """Return the slots of executors, which do not exist before their driver runs; they count for its group."""
        slots, needs = _held_room(cluster).for_pod(pod), self._executors(pod)
        if slots is not None and slots.in_force:
            return len(slots.free)
        return 0 if needs is None or needs.problem else needs.least

    # -- pre-filter

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        needs = self._executors(pod)
        if needs is not None:
            return self._pre_filter_driver(pod, needs, cluster)
        held = _held_room(cluster).for_pod(pod)
        if held is None or not held.in_force or pod.uid == held.owner:
            return SKIP
        most = self._most_executors(held, cluster) if identity(pod).role == EXECUTOR else None
        if most is not None and held.members(excluding=pod.uid) >= most:
            return RejectPod((NO_SPOTS,), resolvable=False)
        return None if self._zone and held.owner else SKIP

    def _pre_filter_driver(self, pod: Pod, needs: Executors, cluster: Cluster) -> RejectPod | None:
        if needs.problem:
            return RejectPod((f"the driver's {needs.problem}",), resolvable=False)
        existing = cluster.get(ResourceReservation, reservation_of(pod))
        if existing is not None and existing.owner != pod.uid:
            owner = cluster.known_pod(existing.owner)
            if owner is not None or not existing.owner:
                whose = "a user" if owner is None else f"pod {owner.name}"
                return RejectPod((f"ResourceReservation {existing.name} is there and belongs to {whose}",), False)
        reason = "" if self._driver_order is None else self._driver_order.must_wait(pod, cluster)
        return RejectPod((reason,)) if reason else None

    # -- filter

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        needs, held = self._executors(pod), _held_room(nodes.cluster).for_pod(pod)
        if needs is not None and not needs.problem:
            fitting = self._fitting(pod, needs, nodes)
            if not fitting.all():
                yield Reject(~fitting, DOES_NOT_FIT)
        elif needs is None and self._zone and held is not None and held.owner in held.pods:
            at = nodes.cluster.nodes.position(held.pods[held.owner][1])
            if at is not None:
                zones = nodes.cluster.nodes.label(self._zone).codes
                yield Reject(nodes.label(self._zone).codes != zones[at], OTHER_ZONE, resolvable=False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        everywhere, cluster = np.ones(len(nodes), np.bool_), nodes.cluster
        needs, held = self._executors(pod), _held_room(cluster).for_pod(pod)
        if needs is not None:
            where = passing(executor(pod, needs), cluster)
            beside = self._fit.most_beside(pod, needs, where, cluster)
            without = self._fit.most(pod, needs, where, cluster) if beside is None else 0
            yield NodeCause(everywhere, causes.no_room(pod, needs, beside, without))
        elif held is not None and held.owner in held.pods:
            driver, node = held.pods[held.owner]
            at = cluster.nodes.position(node)
            zone = cluster.nodes.label(self._zone).values[at] if at is not None else None
            text = f"its driver {driver} is in {self._zone} {zone}"
            yield NodeCause(everywhere, causes.refused(pod, "reservation-zone", text, zone=zone))

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        needs = self._executors(pod)
        if needs is None:
            held = _held_room(cluster).for_pod(pod)
            most = None if held is None else self._most_executors(held, cluster)
            text = f"it has all of its {most} executors already"
            yield causes.refused(pod, "reservation-executors", text, most=most)
        elif needs.problem:
            yield causes.refused(pod, "reservation-invalid", f"the driver's {needs.problem}")
        elif (refused := self._pre_filter_driver(pod, needs, cluster)) is not None:
            order = refused.reasons[0] in (DOES_NOT_FIT, EARLIER)
            yield causes.refused(pod, "reservation-order" if order else "reservation-exists", refused.reasons[0])

    def _fitting(self, pod: Pod, needs: Executors, nodes: Nodes) -> Bools:
        """Return the nodes where the driver leaves enough room for its executors in the cluster."""
        cluster = nodes.cluster
        where = passing(executor(pod, needs), cluster)
        self._open = pod.uid, cluster.nodes.over_all_rows(where)
        fitting = cluster.nodes.over_all_rows(self._fit.fitting(pod, needs, where, cluster))
        return nodes.copy_of(fitting) > 0  # type: ignore[no-any-return]

    def avoid(self, pod: Pod, cluster: Cluster) -> Avoid | None:
        """Avoid nodes without a slot for the pod, and nodes with GPUs that the pod does not need."""
        held = _held_room(cluster).for_pod(pod)
        if held is not None and pod.uid != held.owner and held.free:
            return Avoid(_nodes_of(islice(held.free.values(), FEW), pod), NOT_RESERVED, others=True)
        if self._executors(pod) is None and (held is None or not held.owner):
            return None
        unneeded = self._fit.unneeded(pod.request, cluster.nodes)
        names = cluster.nodes.where(unneeded).names if unneeded.any() else []
        return Avoid(frozenset(names), WITH_GPUS) if names else None

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:
        """Add to the pod's message what the application lacks. Nothing is preempted here."""
        needs, cluster = self._executors(pod), evaluator.nodes.cluster
        if needs is None or needs.problem or decision.refused is not None or not needs.least:
            return PostFilterResult()
        where = passing(executor(pod, needs), cluster)
        wants = ", ".join(f"{resource} {text}" for resource, text in needs.resources.items())
        of_all = f"of {needs.least} executors ({wants} each)"
        fitting = self._fit.most_beside(pod, needs, where, cluster)
        if fitting is None:
            without = self._fit.most(pod, needs, where, cluster)
            more = f"; without it {without} {of_all} have room" if without < needs.least else ""
            return PostFilterResult((f"No node is left for the driver itself{more}",))
        if fitting == needs.least:
            return PostFilterResult()  # room is not what the application lacks
        return PostFilterResult((f"The driver and {fitting} {of_all} have room beside other pods",))

    # -- binding

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | None:
        """Hold the slots of a driver's executors, or give an executor its slot."""
        needs, state = self._executors(pod), cluster.state
        if needs is None or needs.problem:
            state.held_rooms[ResourceReservation].move(pod.uid)  # if its node has no slot for it
            return None
        existing = state.store.get(ResourceReservation, reservation_of(pod))
        self._before[pod.uid] = existing
        if existing is not None:
            state.discard(existing)  # a reservation of an earlier attempt must not hold room against this one
        names = self._packed(pod, needs, node_name, cluster)
        if names is None:
            del self._before[pod.uid]
            if existing is not None:
                state.put(existing)
            return RejectPod((DOES_NOT_FIT,))
        state.put(documents.planned(pod, node_name, needs, names, existing))
        return None

    def _packed(self, pod: Pod, needs: Executors, node_name: str, cluster: Cluster) -> list[str] | None:
        """Return a node for each executor; None if there is not enough room."""
        nodes, at = cluster.nodes, cluster.nodes.position(node_name)
        asked, column = self._open
        where = nodes.copy_of(column) > 0 if asked == pod.uid else np.ones(len(nodes), np.bool_)
        given = None if at is None else self._fit.packed(needs, pod, at, where, cluster)
        return None if given is None else [nodes[int(at)].name for at in np.repeat(np.arange(len(nodes)), given)]

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        """Restore the reservation of before, unless the API server has sent another version since."""
        if pod.uid not in self._before:
            return
        state, before = cluster.state, self._before.pop(pod.uid)
        now = state.store.get(ResourceReservation, reservation_of(pod))
        if now is None or _version(now) != ("" if before is None else _version(before)):
            return
        if before is None:
            state.discard(now)
        else:
            state.put(before)

    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[Create | Patch]:  # noqa: ARG002
        found = cluster.get(ResourceReservation, reservation_of(pod))
        if pod.uid in self._before and found is not None:
            yield documents.written(found)

    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[Any]:  # noqa: ARG002
        self._before.pop(pod.uid, None)
        return ()

    # -- the reservations themselves

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Write]:
        return self._reconciler.writes(changed, cluster)

    @property
    def reconcile_at(self) -> float | None:
        return self._reconciler.next_at

    def gauges(self, cluster: Cluster) -> Iterator[Gauge]:
        return reconcile.gauges(cluster)

    # -- requeueing

    def cluster_events(self, old: Object | None, new: Object | None) -> Iterator[ClusterEvent]:
        return events.of(old, new)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Add", "Delete", "UpdatePodScaleDown"), hint="pod_matters")
        yield Wake(events.PENDING_DRIVER, ("Delete",), hint="has_executors")
        yield Wake("Node", ("Add", "Delete", "UpdateNodeAllocatable", "UpdateNodeLabel", "UpdateNodeTaint"))
        yield Wake(reservations.KIND, ("Add", "Update", "Delete"))

    def pod_matters(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """True if a pod of the same application left; for a driver, also if room was freed or another one was bound."""
        other = new if old is None else old
        if other is None:
            return False
        if new is not None and old is None:
            return is_driver(other) and self.has_executors(pod, old, new)
        return self.has_executors(pod, old, new) or reservation_of(other) == reservation_of(pod)

    def has_executors(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:  # noqa: ARG002
        return self._executors(pod) is not None

    def _most_executors(self, held: HeldSlots, cluster: Cluster) -> int | None:
        """Return how many executors an application may have, if its driver says so."""
        driver = cluster.pod(held.owner) if held.owner else None
        needs = None if driver is None else self._executors(driver.pod)
        return None if needs is None or needs.problem else needs.most


def _held_room(cluster: Cluster) -> HeldRoom:
    return cluster.held_room(ResourceReservation)


def _nodes_of(slots: Iterable[Slot], pod: Pod) -> frozenset[str]:
    """Return the nodes of slots that fit the pod exactly; if there are none, the nodes of all slots."""
    needs = {"pods": 1, **{resource: amount for resource, amount in pod.request.items() if amount}}
    nodes = [(slot.node, slot.amounts == needs) for slot in slots]
    fitting = frozenset(node for node, fits in nodes if fits)
    return fitting or frozenset(node for node, _ in nodes)


def _version(found: Object) -> str:
    return found.metadata.resource_version
