"""What a plugin is: a plain class with any of these methods. One Protocol per extension point; no base class.

The constructor is the configuration: YAML `args` become keyword arguments (camelCase to snake_case), an unknown one is
an error. Methods see the pod, and the cluster as read-only columns; they do no I/O, read no clock, draw no number.

A plugin says at which further points a configuration may list it (`configurable_at`) where kube-scheduler splits in two
what is one method here: score is PreScore, Score and NormalizeScore.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec

from stowplan.columns.arrays import Ints
from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster, Nodes
from stowplan.framework.verdict import Decision, Only, PostFilterResult, Refuse, Reject, _Skip
from stowplan.objects.pods import Pod


class Plugin(Protocol):
    """Anything with at least one of the methods below."""

    configurable_at: ClassVar[tuple[str, ...]]


@runtime_checkable
class PreEnqueue(Protocol):
    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Refuse | None:
        """May the pod be tried at all? A refused pod is held outside the queue."""


@runtime_checkable
class QueueSort(Protocol):
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        """Pods with smaller keys go first."""


@runtime_checkable
class PreFilter(Protocol):
    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Only | _Skip | None:
        """Before any node is looked at: refuse the pod, narrow the search, or have nothing to do (SKIP)."""


@runtime_checkable
class Filter(Protocol):
    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Reject]:
        """Which of these nodes are refused, and why."""


class Evaluator(Protocol):
    """What a post-filter may ask for: would the pod pass, if the cluster were otherwise?"""

    state: ClusterState

    def passes(self, nodes: Nodes) -> Ints | Any:
        """Which of these nodes the pod would get past all filters on, as things stand (in a trial, say)."""

    def local(self) -> str:
        """Does every filter that applies judge a node by that node alone?"""


@runtime_checkable
class PostFilter(Protocol):
    def post_filter(self, pod: Pod, decision: Decision, evaluator: Any) -> PostFilterResult:
        """No node was feasible: can room be made?"""


@runtime_checkable
class Score(Protocol):
    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        """0 to 100 for each of these feasible nodes; None to have no say for this pod."""


@runtime_checkable
class Reserve(Protocol):
    def reserve(self, pod: Pod, node_name: str, state: ClusterState) -> Refuse | None:
        """The pod was given this node: take what goes with it."""

    def unreserve(self, pod: Pod, node_name: str, state: ClusterState) -> None:
        """The pod will not get the node after all: give it back. May be called without a reserve before it."""


@runtime_checkable
class Permit(Protocol):
    def permit(self, pod: Pod, node_name: str, cluster: Cluster) -> Refuse | float | None:
        """Let the pod go on (None), refuse it, or make it wait so many seconds at the most."""


@runtime_checkable
class PreBind(Protocol):
    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[Any]:
        """Actions that must succeed before the pod is bound."""


@runtime_checkable
class Bind(Protocol):
    def bind(self, pod: Pod, node_name: str) -> Any | None:
        """The action that binds the pod; None leaves it to the next plugin."""


@runtime_checkable
class PostBind(Protocol):
    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[Any]:
        """Actions once the pod is bound."""


class Wake(msgspec.Struct, frozen=True):
    """An event that may make a pod schedulable which this plugin rejected.

    `resource` and `actions` are kube-scheduler's words (Node: Add, UpdateNodeLabel …). `hint`, where given, is the name
    of a method `hint(pod, old, new) -> bool` that says whether this very event helps this very pod.
    """

    resource: str
    actions: tuple[str, ...]
    hint: str = ""


@runtime_checkable
class Wakes(Protocol):
    def wakes_on(self) -> Iterable[Wake]:
        """What wakes a pod that this plugin rejected. A plugin without this is woken by everything."""


# Each extension point, in kube-scheduler's spelling, and the method that a plugin has there.
METHODS: dict[str, str] = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}


def points_of(plugin: type) -> frozenset[str]:
    """The points at which a configuration may list this plugin."""
    has = {point for point, method in METHODS.items() if method and callable(getattr(plugin, method, None))}
    return frozenset(has | set(getattr(plugin, "configurable_at", ())))
