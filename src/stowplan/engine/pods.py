"""A pod as it will be once it is bound."""

from __future__ import annotations

import msgspec

from stowplan.objects.pods import Pod


def assumed(pod: Pod, node_name: str) -> Pod:
    """The pod with this node, as the API server will show it after the binding."""
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    made = msgspec.structs.replace(pod, spec=spec)
    if "shape" in pod.__dict__:
        made.__dict__["shape"] = pod.__dict__["shape"]  # a pod's node is not part of its shape
    return made
