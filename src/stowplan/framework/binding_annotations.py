"""A role of plugins: annotations that a pod gets with its binding. It has no extension point of its own.

The API server copies annotations of a Binding to the pod in the same write that sets its node. So there is no pod with
a node and without them. If an HTTP extender binds the pod, they are not written.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.pods import Pod


@runtime_checkable
class BindingAnnotationsPlugin(Protocol):
    def binding_annotations(self, pod: Pod, node_name: str, cluster: Cluster) -> dict[str, str] | None:
        """Return annotations for the pod. Called when it is about to be bound; it is assumed to be on the node."""
