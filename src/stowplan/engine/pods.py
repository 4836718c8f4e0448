"""A pod as it will be once it is bound."""

from __future__ import annotations

import msgspec

from stowplan.objects.pods import Pod


def assumed(pod: Pod, node_name: str) -> Pod:
    """The pod with this node, as the API server will show it after the binding."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
