"""Causes: the concrete thing for which a plugin rejected nodes, or a pod, by name.

A rejection's reason is kube-scheduler's ("node(s) had untolerated taint(s)"). A cause says which taint. Only `explain`
asks for causes, never a decision, so a plugin may take its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.objects.pods import Pod

REJECTED = "rejected"  # the code of a cause that is only known by the reason of the rejection

Detail: TypeAlias = str | int | bool | tuple["Detail", ...] | Mapping[str, "Detail"] | None


@dataclass(frozen=True, slots=True)
class Cause:
    """One concrete thing: `Cause("taint", "taint dedicated=gpu:NoSchedule", {"key": "dedicated", …})`.

    code      stable, for programs; a plugin of a third party chooses its own ("acme.example.com/quota")
    text      for people; it completes "15 nodes: …" and "the pod: …"
    details   the same for programs: values that JSON has
    """

    code: str
    text: str
    details: Mapping[str, Detail] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class NodeCause:
    """A cause, and the nodes for which it holds.

        yield NodeCause(nodes.label("team") == "web", Cause("acme.example.com/team", "the node belongs to team web"))

    `rows` is True for these nodes, in the order of the view.
    """

    rows: Bools
    cause: Cause


@runtime_checkable
class CausesPlugin(Protocol):
    """A filter that can name the concrete thing for which it rejected nodes. It is optional: without it, the reason of
    the rejection is shown. Only a diagnosis asks.
    """

    def causes(self, pod: Pod, nodes: Nodes) -> Iterable[NodeCause]:
        """Return the causes for these nodes, all of which the filter rejected. A node may have several causes."""


@runtime_checkable
class PodCausesPlugin(Protocol):
    """The same for a plugin that rejects the pod as a whole, in `pre_enqueue` or `pre_filter`."""

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterable[Cause]:
        """Return why the pod as a whole is rejected now."""
