"""ReplicaSets and the like with a history of where their pods have been, and those pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.sp_priority.plugin import STATE
from stowplan.testing.builders import a_pod, a_profile


def an_owner(
    state: str | Mapping[str, Any] | None = None, *, kind: str = "ReplicaSet", name: str = "web", replicas: int = 1,
    of: tuple[str, str] | None = None, namespace: str = "default", annotations: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """`state` is its history, as text or as what the text says; `of` is its own controller."""
    text = state if isinstance(state, str | None) else msgspec.json.encode(state).decode()
    metadata = {
        "name": name, "namespace": namespace, "uid": f"uid-of-{name}",
        "annotations": {**(annotations or {}), **({} if text is None else {STATE: text})},
        "ownerReferences": [] if of is None else [reference(*of)],
    }  # fmt: skip
    return kinds.convert(kinds.KINDS[kind], {"metadata": metadata, "spec": {"replicas": replicas}})


def reference(kind: str, name: str, api_version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}


def a_replica(
    name: str = "web-1", *, of: tuple[str, ...] | None = ("ReplicaSet", "web"),
    annotations: Mapping[str, str] | None = None, **keywords: Any,
) -> Pod:  # fmt: skip
    pod = a_pod(name, owner=None if of is None else reference(*of), **keywords)
    metadata = msgspec.structs.replace(pod.metadata, annotations=dict(annotations or {}))
    return msgspec.structs.replace(pod, metadata=metadata)


def with_priority(weight: int = 5, **args: Any) -> Profile:
    """The default profile with SPPriority, as its seed configures it."""
    plugins = {"multiPoint": {"enabled": [{"name": "SPPriority", "weight": weight}]}}
    return a_profile({"profiles": [{"plugins": plugins, "pluginConfig": [{"name": "SPPriority", "args": args}]}]})
