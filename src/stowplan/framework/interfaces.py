"""What a plugin is: a plain class with any of these methods. One Protocol per extension point or role; no base class.

The constructor is the configuration: YAML `args` become keyword arguments (camelCase to snake_case), and an unknown
argument is an error. Methods see the pod, and the cluster as read-only columns. They do no I/O, read no clock and draw
no random number.

Class attributes that a plugin may have, all optional:

    configurable_at   further points at which a configuration may list the plugin, where kube-scheduler has two points
                      for one method here (score is PreScore, Score and NormalizeScore)
    local             how much of a node the filter looks at, if it looks at nothing else: "node" (the object alone),
                      "resources" (and the resources that pods use), "pods" (and the pods there); preemption then
                      evaluates many nodes at once
    filters_by_row    the filter's answer for a node depends on the pod's shape and that row alone, so it may be cached.
                      With a method `fits(pod, node)`, as in `per_node`, a row that changed costs less
    scores_by_row     the same for the score; the method for one node is `rate(pod, node)`
    scores_by_node    the score is the same for all pods of a shape while no node object changes and the same nodes are
                      asked about; it may be relative to the best of them. Pods on nodes must not matter
    ignores_volumes   cached answers, and pre_filter's, do not depend on the pod's volumes: pods that differ in nothing
                      else share them. `ignores_requests`: the same for what it requests (pre_filter, a score by node)
    pre_filters_by_shape   pre_filter answers None or SKIP, the same to all pods of a shape, so it is asked once. This
                      and `filters_by_row` may be methods: is it so for this pod?
    skip_is_final     if pre_filter answers SKIP, then reserve, pre_bind and pre_bound have nothing to do either
    quick_pre_bind    pre_bind only writes once: the pod's status need not name the node in the meantime
    awaits            kinds whose changes make the engine call `pre_bound` again, if that answered False
    reads             the kinds that the plugin reads, in addition to pods and nodes; the app watches these kinds. A
                      kind is a name, or a `CustomResource` if the plugin brings it
    writes            what its actions write besides the kinds that it brings: {"Deployment": ("patch",)}. The words are
                      "status", "create", "patch" and "delete", and of pods "evict"; a write that is not declared is an
                      error
    reconciles        kinds whose changes make the engine call `reconcile`; see `ReconcilePlugin`
    reconcile_at      (of an instance) when to call `reconcile` again though nothing changed, by `cluster.now`, or None
    retries_by_object   when a write that failed is to be tried again, `reconcile` gets that object alone, and not None
    holds_room        how objects of its kind hold room on nodes for pods that do not exist yet: a `HoldingSource`
                      (`columns/held/source.py`)
    own_kinds         kinds whose cluster events only the plugin itself knows; see `ClusterEventsPlugin`
    args_file         a file with further arguments: (the argument that names the file, the default file). Arguments in
                      the configuration take precedence; a default file that does not exist is ignored
    args_alike        other names of arguments, in snake_case: {a name: the argument it stands for}. If the
                      configuration gives either of the two, the file's are ignored
    one_for_all       all profiles that enable the plugin share one instance, so they must give it the same arguments
    wanted_at         points where a configuration that lists the plugin anywhere should list it, and what is wrong
                      otherwise
    instead_of        plugins that it takes the place of, by the point where a configuration should disable them:
                      {"filter": "TaintToleration"}
    config_notes      (of an instance) remarks on its arguments, for people who check a configuration
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from stowplan.columns.arrays import Bytes, Ints, Rows
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.cluster_event import ClusterEvent
from stowplan.framework.decision import (
    Avoid,
    Candidate,
    Decision,
    NotYet,
    Only,
    PostFilterResult,
    Reject,
    RejectPod,
    Skip,
    Verdict,
)
from stowplan.framework.group import Group, SlotPods
from stowplan.objects.actions import AnyAction, Write
from stowplan.objects.affinity import AffinityTerm
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

if TYPE_CHECKING:
    from stowplan.framework.what_if import WhatIf


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        """Reject a pod that may not be scheduled yet. A rejected pod is gated: it stays outside the queue."""


@runtime_checkable
class GroupPlugin(Protocol):
    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
        """Return the pod's group, if any, by the pod's own fields: it is the same with and without a node."""


@runtime_checkable
class SlotsPlugin(Protocol):
    """A plugin that holds room for pods which do not exist yet; it may be enabled at any point."""

    def slots_of(self, pod: Pod, cluster: Cluster) -> int:
        """Return how many slots are held, or will be with this pod, for members of its group that do not exist yet."""


@runtime_checkable
class SlotPodsPlugin(Protocol):
    """The same: what it holds room for. Pods are preempted for all of it, or for none of it."""

    def slot_pods(self, pod: Pod, cluster: Cluster) -> SlotPods | None:
        """Return the pods for which slots are held as soon as this pod has a node; None if there are none."""


@runtime_checkable
class QueueSortPlugin(Protocol):
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        """Return a key; the pod with the smaller key is attempted first."""


class QueueEntry(msgspec.Struct, frozen=True):
    """A pod, or one member of a group, in the scheduling queue.

        def cluster_key(self, entry: QueueEntry, cluster: Cluster):
            return -entry.pod.priority, used_by(entry.pod.namespace, cluster), entry.queued_at

    created           when the group's own object was created, or its oldest member, or the pod
    partially_bound   some members of the group are bound, but too few
    aged              the group has waited for longer than the sort plugin's `ages_after`
    """

    pod: Pod
    queued_at: float
    group: str = ""
    created: datetime | None = None
    partially_bound: bool = False
    aged: bool = False


@runtime_checkable
class GroupSortPlugin(Protocol):
    """A queueSort plugin that knows of groups; this method is called instead of `sort_key`."""

    ages_after: float  # seconds until a waiting group counts as aged; 0: never

    def group_key(self, waiting: QueueEntry) -> Any:
        """Return a key; the entry with the smaller key is attempted first."""


@runtime_checkable
class ClusterSortPlugin(Protocol):
    """A queueSort plugin whose order depends on the cluster, such as fair share.

    The queue calls `cluster_key` instead of `sort_key` and `group_key`. After an event that `reorders_on` names, all
    active units get new keys before the next one is popped.
    """

    def cluster_key(self, entry: QueueEntry, cluster: Cluster) -> Any:
        """The unit with the smaller key goes first."""

    def reorders_on(self) -> Iterable[Wake]:
        """The cluster events that may change the order. Hints are not used."""


@runtime_checkable
class PreFilterPlugin(Protocol):
    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Only | Skip | None:
        """Reject the pod, limit the search to some nodes, or have nothing to do for the pod (SKIP)."""


@runtime_checkable
class FilterPlugin(Protocol):
    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Reject]:
        """Return which of these nodes are rejected, and why."""


class Evaluator(Protocol):
    """What a post-filter may ask: would the pod pass the filters, if the cluster were different?"""

    @property
    def state(self) -> ClusterState:
        """The state of the cluster; changes belong in a `state.trial()`."""

    @property
    def nodes(self) -> Nodes:
        """All nodes of the decision, in the order of its trail."""

    def pre_filtered(self, plugin: str) -> bool:
        """True if this plugin's pre-filter was called."""

    def verdicts(self, rows: Rows) -> list[Verdict | None]:
        """Return the filters' verdict on each of these rows as they are now, in a trial for example; None: feasible."""

    def with_more_victims(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the candidates with further victims: members of groups that would have too few members left."""

    def accepted_by_extenders(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the candidates, and their victims, that HTTP extenders accept."""

    def local(self) -> str:
        """Return the most that any filter for this pod looks at: a value of `local`, or "" for more."""

    def what_if(self) -> WhatIf | None:
        """Return the filters for many nodes at once, each in a what-if of its own; None if a filter cannot do that."""

    def needs_slots(self) -> bool:
        """True if the pod gets a node only with room for other pods, which do not exist yet."""


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:
        """Find evictions that would help. Called if no node is feasible."""


@runtime_checkable
class NeedsFreePlugin(Protocol):
    """A filter that rejects every node with less free room than this.

    Preemption for a group checks this first: it shows cheaply when no eviction can help.
    """

    def needs_free(self, pod: Pod) -> Iterable[tuple[str, int]]:
        """Return resources, and how much of each must be free on a node."""


@runtime_checkable
class KeepsApartPlugin(Protocol):
    """A filter that keeps pods apart; asked for the same purpose as `needs_free`."""

    def keeps_apart(self, pod: Pod, cluster: Cluster) -> Iterable[AffinityTerm]:
        """Return terms of the pod that it matches itself: no two pods with such a term get nodes in one domain."""


@runtime_checkable
class AvoidPlugin(Protocol):
    """A filter that cannot reject the last feasible node. It is called after all filters and extenders.

    It has no extension point of its own: a plugin that is enabled at any point is called.
    """

    def avoid(self, pod: Pod, cluster: Cluster) -> Avoid | None:
        """Return nodes to use only if no other node is feasible. The pod's nominated node is used in any case."""


@runtime_checkable
class ExtenderLabelsPlugin(Protocol):
    """A plugin that changes the labels which HTTP extenders see on a pod; the pod itself does not change.

    Like `avoid`, it has no extension point of its own.
    """

    def for_extenders(self, pod: Pod, cluster: Cluster) -> dict[str, str]:
        """Return labels to add to the pod, or to replace, in requests to extenders."""


@runtime_checkable
class ScorePlugin(Protocol):
    def score(self, pod: Pod, nodes: Nodes) -> Ints | Bytes | int | None:
        """Return 0 to 100 for each of these feasible nodes (int64, or uint8), one number for all, or None: no score."""


@runtime_checkable
class ReservePlugin(Protocol):
    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | None:
        """Reserve what the pod needs on this node. The pod is assumed to be there."""

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:
        """Release what was reserved: the pod does not get the node. May be called without a reserve before it."""


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | float | None:
        """Permit the pod (None), refuse it, or make it wait, at most so many seconds."""


@runtime_checkable
class PreBindPlugin(Protocol):
    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[AnyAction]:
        """Return actions that must succeed before the pod is bound."""


@runtime_checkable
class PreBoundPlugin(Protocol):
    """A pre-bind plugin whose actions start work that other controllers must finish; the pod waits for that.

    `pre_bound` is called once all actions of the pod's pre-binding have succeeded, and again in the step after a
    change: of an object that its `NotYet` names, or (False) of any object of the kinds in `awaits`. A plugin cannot
    wait for pods. After `pre_bind_timeout` seconds (an attribute; 600 without it) the attempt ends with the error
    `pre_bind_late`. What the plugin must know from one call to the next it has assumed at `reserve` (`state.assumed`).
    """

    def pre_bound(self, pod: Pod, node_name: str, cluster: Cluster) -> bool | NotYet | RejectPod:
        """True if what `pre_bind` asked for is there. Reject the pod if it never will be: the attempt ends."""


@runtime_checkable
class BindPlugin(Protocol):
    def bind(self, pod: Pod, node_name: str) -> AnyAction | None:
        """Return the action that binds the pod; None leaves the binding to the next plugin."""


@runtime_checkable
class PostBindPlugin(Protocol):
    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[AnyAction]:
        """Return actions for after the binding."""


@runtime_checkable
class SiblingsPlugin(Protocol):
    def siblings(self, pod: Pod, cluster: Cluster) -> Iterable[str]:
        """Return uids of waiting pods to attempt now. Called when the pod is assumed on a node, and when bound."""


@runtime_checkable
class ReconcilePlugin(Protocol):
    """A plugin that keeps objects of the API in step with the cluster, for all profiles that enable it."""

    reconciles: Collection[str]  # the kinds whose changes `reconcile` gets

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Write]:
        """Return the writes that are due now.

        `changed` has the old and new versions of all objects of these kinds that changed since the last call. None:
        look at all objects, at the start or because a write failed (see `retries_by_object`).
        """


class Gauge(msgspec.Struct, frozen=True):
    """A metric of a plugin, served with the scheduler's metrics; its name gets the prefix `stowplan_`.

    yield Gauge("team_budget_left", "Pods that a team may still start.", 3, {"team": "web"})
    """

    name: str
    help: str
    value: float
    labels: dict[str, str] = {}


@runtime_checkable
class GaugesPlugin(Protocol):
    def gauges(self, cluster: Cluster) -> Iterable[Gauge]:
        """Return the plugin's own metrics. Called from time to time, between decisions."""


class Drift(msgspec.Struct, frozen=True):
    """A difference that a recount found: what was counted, the plugin's count, and the right count."""

    what: str
    counted: int
    recounted: int


@runtime_checkable
class RecountPlugin(Protocol):
    """A plugin whose counts can be compared with the API's objects, to verify them."""

    recount_every: float  # seconds; 0: never

    def recount(self, pods: Iterable[Pod], cluster: Cluster) -> Iterable[Drift]:
        """Return the counts that differ from a count of these pods, which are all pods in the cluster."""


class Wake(msgspec.Struct, frozen=True):
    """A cluster event that may make a pod schedulable which this plugin rejected.

        def wakes_on(self):
            yield Wake("TeamBudget", ("Add", "Update"), hint="has_room")
            yield Wake("AssignedPod", ("Delete",))

    `resource` and `actions` are kube-scheduler's words (Node: Add, UpdateNodeLabel …). `hint` is the name of a method
    `hint(pod, old, new) -> bool` of the plugin: does the event help this pod? `own`: only events of the pod itself.
    """

    resource: str
    actions: tuple[str, ...]
    hint: str = ""
    own: bool = False

    def helps(self, plugin: Any, pod: Pod, old: Any, new: Any, cluster: Cluster | None = None) -> bool:
        """True if the change of an object from `old` to `new` helps this pod."""
        if self.own and pod.uid != getattr(new, "uid", None):
            return False
        about = (pod, old, new, cluster) if self.hint in getattr(plugin, "hints_in_cluster", ()) else (pod, old, new)
        return not self.hint or bool(getattr(plugin, self.hint)(*about))


@runtime_checkable
class RequeuePlugin(Protocol):
    def wakes_on(self) -> Iterable[Wake]:
        """Return the events that requeue a pod which this plugin rejected. Without this method every event does."""


@runtime_checkable
class ClusterEventsPlugin(Protocol):
    """A plugin that adds cluster events of its own.

    Its `own_kinds` have no other events than these. Changes of other kinds have these and the usual ones.
    """

    def cluster_events(self, old: Object | None, new: Object | None) -> Iterable[ClusterEvent]:
        """Return the cluster events of a change. `old` is None for a new object, `new` for a deleted one."""
