"""DefaultBinder: bind the pod to its node by the API's binding subresource."""

from __future__ import annotations

from stowplan.objects.actions import Bind, PodRef
from stowplan.objects.pods import Pod


class DefaultBinder:
    def bind(self, pod: Pod, node_name: str) -> Bind:
        return Bind(pod=PodRef(pod.namespace, pod.name, pod.uid), node_name=node_name)
