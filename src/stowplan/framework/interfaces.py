"""What a plugin is: a plain class with any of these methods. One Protocol per extension point; no base class.

The constructor is the configuration: YAML `args` become keyword arguments (camelCase to snake_case), an unknown one is
an error. Methods see the pod, and the cluster as read-only columns; they do no I/O, read no clock, draw no number.

Class attributes that a plugin may have, all optional:

    configurable_at   further points at which a configuration may list it, where kube-scheduler splits in two what is
                      one method here (score is PreScore, Score and NormalizeScore)
    local             how much of a node its filter looks at, if at nothing but that node: "node" (the object alone),
                      "resources" (and what pods take of it), "pods" (and the pods there); preemption then tries many
                      nodes at once
    filters_by_row    its filter's answer for a node depends on the pod's shape and that row alone, so it may be kept
    scores_by_row     the same for its score
    skip_is_final     where its pre_filter answers SKIP, its reserve, pre_bind and pre_bound have nothing to do either
    quick_pre_bind    its pre_bind wants no more than a write: the pod's status need not say meanwhile where it is to go
    awaits            kinds whose changes make it worth asking its `pre_bound` again, if that answers False
    reads             the kinds that it reads besides pods and nodes; whoever runs it keeps those of the cluster in step
    reconciles        kinds whose changes make it worth calling its `reconcile`; see `ReconcilePlugin`
    reconcile_at      (of an instance) when to call its `reconcile` again though nothing changed, by `cluster.now`, or
                      None
    holds_room        how objects of its kind hold room on nodes for pods that do not exist yet: a `HoldingSource`
                      (`columns/held/source.py`)
    own_kinds         kinds whose cluster events only the plugin itself knows; see `ClusterEventsPlugin`
    args_file         where further arguments of it may be found: (the argument that names the file, its default); what
                      the configuration itself says wins, and a default file that is not there is nothing
    args_alike        arguments that are other names of others, in snake_case: {a name: the one it stands for}; where
                      the configuration gives either, the file's are passed over
    one_for_all       all profiles that have it share one instance, so they must give it the same arguments
    wanted_at         points where a configuration that lists it anywhere should list it, and what is amiss otherwise
    config_notes      (of an instance) what whoever checks a configuration should know about the arguments given there
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from stowplan.columns.arrays import Bytes, Ints, Rows
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.cluster_event import ClusterEvent
from stowplan.framework.verdict import (
    Avoid,
    Candidate,
    Decision,
    NotYet,
    Only,
    PostFilterResult,
    Refuse,
    Reject,
    Skip,
    Verdict,
)
from stowplan.objects.actions import AnyAction, Write
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Refuse | None:
        """May the pod be tried at all? A refused pod is held outside the queue."""


TIMEOUT = 10.0  # seconds
UNKNOWN = 1 << 30  # a minimum that nobody has said yet, and that no group has


class Group(msgspec.Struct, frozen=True):
    """Pods tried and committed as one: its name, and how many of them must have a node for any to get one. If an
    object says so, the group's name is that object's key: it is looked at anew when that changes.

    slots       places that are held for members which do not exist yet; they count as members with a node
    timeout     seconds from the decision until all members must be ready to be bound
    match       which members count: "waiting-and-running", "only-waiting", or "once-satisfied": a group that once had
                enough takes its members one by one from then on
    evicts      a group that is bound in part only is taken back whole; else the missing members go first
    told_after  seconds after which a group bound in part is told who is bound and who is not
    preempts    pods that matter less may be evicted, if the whole group fits then
    resources   amounts that must be free in the cluster, those of its own members included, before it is tried
    created     when the group's own object was made, if it has one
    advice      what would help a group that waits for members
    """

    name: str
    minimum: int
    slots: int = 0
    timeout: float = TIMEOUT
    match: str = "waiting-and-running"
    evicts: bool = False
    told_after: float = 60.0
    preempts: bool = True
    resources: dict[str, int] = {}
    created: datetime | None = None
    advice: str = ""


@runtime_checkable
class GroupPlugin(Protocol):
    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
        """The group that the pod belongs to, if any: by the pod's own fields, whether it has a node or not."""


@runtime_checkable
class SlotsPlugin(Protocol):
    """A plugin that holds room for pods which do not exist yet, wherever in a profile it runs."""

    def slots_of(self, pod: Pod, cluster: Cluster) -> int:
        """Places that are, or together with this pod will be, held for members of its group that are still to come."""


@runtime_checkable
class QueueSortPlugin(Protocol):
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        """Pods with smaller keys go first."""


class QueueEntry(msgspec.Struct, frozen=True):
    """A pod, or a group by one of its members, that waits to be tried.

    `created` is when the group's own object was made, or its oldest member, or the pod. `in_part`: some of its members
    are bound, too few. `aged`: it has waited for longer than the sort plugin's `ages_after`.
    """

    pod: Pod
    queued_at: float
    group: str = ""
    created: datetime | None = None
    in_part: bool = False
    aged: bool = False


@runtime_checkable
class GroupSortPlugin(Protocol):
    """A queueSort plugin that knows of groups; it is asked by this method instead of `sort_key`."""

    ages_after: float  # seconds until a waiting group counts as aged; 0: never

    def group_key(self, waiting: QueueEntry) -> Any:
        """Who has the smaller key goes first."""


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
    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Only | Skip | None:
        """Before any node is looked at: refuse the pod, narrow the search, or have nothing to do (SKIP)."""


@runtime_checkable
class FilterPlugin(Protocol):
    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Reject]:
        """Which of these nodes are refused, and why."""


class Evaluator(Protocol):
    """What a post-filter may ask for: would the pod pass, if the cluster were otherwise?"""

    @property
    def state(self) -> ClusterState:
        """The state to try things on (`state.trial()`)."""

    @property
    def nodes(self) -> Nodes:
        """All nodes of the decision."""

    def pre_filtered(self, plugin: str) -> bool:
        """Did this plugin's pre-filter have its turn?"""

    def verdicts(self, rows: Rows) -> list[Verdict | None]:
        """What the filters say about these rows as things stand now (in a trial, say); None for a feasible one."""

    def joined(self, candidates: list[Candidate]) -> list[Candidate]:
        """The candidates with all who would have to go besides: members of groups that too few would be left of."""

    def consulted(self, candidates: list[Candidate]) -> list[Candidate]:
        """What extenders leave of nodes where evictions would make room, and of the victims there."""

    def local(self) -> str:
        """The most that any filter for this pod looks at (the words of `local`, "" for more)."""


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:
        """No node was feasible: can room be made?"""


@runtime_checkable
class NeedsFreePlugin(Protocol):
    """A filter that refuses every node with less room than this. Preemption for a group looks at it first, by which it
    finds out cheaply that nobody's going could help.
    """

    def needs_free(self, pod: Pod) -> Iterable[tuple[str, int]]:
        """Resources, and how much of each must be free on a node."""


@runtime_checkable
class AvoidPlugin(Protocol):
    """A filter that yields: it is asked when all filters and extenders have spoken, and cannot refuse the last node.

    It has no extension point of its own; a plugin that runs anywhere in a profile is asked.
    """

    def avoid(self, pod: Pod, cluster: Cluster) -> Avoid | None:
        """Nodes that the pod gets only if no other is feasible. A node that it was promised is taken all the same."""


@runtime_checkable
class ExtenderLabelsPlugin(Protocol):
    """A plugin that lets HTTP extenders see a pod otherwise than it is; the pod itself does not change.

    Like `avoid`, it has no extension point of its own.
    """

    def for_extenders(self, pod: Pod, cluster: Cluster) -> dict[str, str]:
        """Labels that the pod is shown with: those that it has not, and those that it has otherwise."""


@runtime_checkable
class ScorePlugin(Protocol):
    def score(self, pod: Pod, nodes: Nodes) -> Ints | Bytes | int | None:
        """0 to 100 for each of these feasible nodes (int64, or uint8); one number for all; None to have no say."""


@runtime_checkable
class ReservePlugin(Protocol):
    def reserve(self, pod: Pod, node_name: str, state: ClusterState) -> Refuse | None:
        """The pod was given this node: take what goes with it."""

    def unreserve(self, pod: Pod, node_name: str, state: ClusterState) -> None:
        """The pod will not get the node after all: give it back. May be called without a reserve before it."""


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(self, pod: Pod, node_name: str, cluster: Cluster) -> Refuse | float | None:
        """Let the pod go on (None), refuse it, or make it wait so many seconds at the most."""


@runtime_checkable
class PreBindPlugin(Protocol):
    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[AnyAction]:
        """Actions that must succeed before the pod is bound."""


@runtime_checkable
class PreBoundPlugin(Protocol):
    """A pre-bind plugin whose actions only begin something that others must finish; the pod waits for them.

    It is asked once all actions of the pod's pre-binding have succeeded, and again in the step after a change: of one
    of the objects that its `NotYet` names, or (False) of any object of the kinds in its `awaits`. Pods cannot be
    waited for. After `pre_bind_timeout` seconds (an attribute; 600 without it) the attempt ends as an error that says
    `pre_bind_late`. What it must know from one question to the next it has assumed at `reserve` (`state.assumed`).
    """

    def pre_bound(self, pod: Pod, node_name: str, cluster: Cluster) -> bool | NotYet | Refuse:
        """Is there what `pre_bind` asked for? Refusing ends the attempt as an error: it never will be."""


@runtime_checkable
class BindPlugin(Protocol):
    def bind(self, pod: Pod, node_name: str) -> AnyAction | None:
        """The action that binds the pod; None leaves it to the next plugin."""


@runtime_checkable
class PostBindPlugin(Protocol):
    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[AnyAction]:
        """Actions once the pod is bound."""


@runtime_checkable
class SiblingsPlugin(Protocol):
    def siblings(self, pod: Pod, cluster: Cluster) -> Iterable[str]:
        """Uids of waiting pods to try now: asked once the pod has its node, and again once it is bound."""


@runtime_checkable
class ReconcilePlugin(Protocol):
    """A plugin that keeps something in the API in step with the cluster, on behalf of all profiles that have it."""

    reconciles: Collection[str]  # the kinds whose changes it is told of

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Write]:
        """What is to be written now. `changed` has the old and new versions of all objects of its kinds that changed
        since it was last asked; None: look at everything, at the start or because a write failed.
        """


class Gauge(msgspec.Struct, frozen=True):
    """A figure beside the scheduler's metrics; its name gets the prefix `stowplan_`."""

    name: str
    help: str
    value: float
    labels: dict[str, str] = {}


@runtime_checkable
class GaugesPlugin(Protocol):
    def gauges(self, cluster: Cluster) -> Iterable[Gauge]:
        """Figures of its own, for people who watch; asked now and then, between decisions."""


class Drift(msgspec.Struct, frozen=True):
    """A count that a recount did not confirm: what of, how many a plugin goes by, and how many there are."""

    what: str
    counted: int
    recounted: int


@runtime_checkable
class RecountPlugin(Protocol):
    """A plugin whose counts may be compared with the API's own objects, for whoever wants to see that they agree."""

    recount_every: float  # seconds; 0: never

    def recount(self, pods: Iterable[Pod], cluster: Cluster) -> Iterable[Drift]:
        """Where its counts are other than these pods make them, which are all there are in the cluster."""


class Wake(msgspec.Struct, frozen=True):
    """An event that may make a pod schedulable which this plugin rejected.

    `resource` and `actions` are kube-scheduler's words (Node: Add, UpdateNodeLabel …). `hint`, where given, is the name
    of a method `hint(pod, old, new) -> bool` that says whether this very event helps this very pod. `own`: only what
    happens to the rejected pod itself.
    """

    resource: str
    actions: tuple[str, ...]
    hint: str = ""
    own: bool = False

    def helps(self, plugin: Any, pod: Pod, old: Any, new: Any) -> bool:
        """Does what happened to an object (from `old` to `new`) help this pod?"""
        if self.own and pod.uid != getattr(new, "uid", None):
            return False
        return not self.hint or bool(getattr(plugin, self.hint)(pod, old, new))


@runtime_checkable
class RequeuePlugin(Protocol):
    def wakes_on(self) -> Iterable[Wake]:
        """What wakes a pod that this plugin rejected. A plugin without this is woken by everything."""


@runtime_checkable
class ClusterEventsPlugin(Protocol):
    """A plugin that knows more cluster events than Kubernetes has.

    Its `own_kinds` have no other events than these. Changes of other kinds have these and the usual ones.
    """

    def cluster_events(self, old: Object | None, new: Object | None) -> Iterable[ClusterEvent]:
        """Return the cluster events of a change. `old` is None for a new object, `new` for a deleted one."""
