"""Calls of the methods by which plugins name causes, with every answer checked. `explain` and `check_plugin` use them.

A plugin without these methods has the reasons of its rejections as causes: `Cause("rejected", reason)`. So has a node,
or a pod, for which a plugin names none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import REJECTED, Cause, CausesPlugin, NodeCause, PodCausesPlugin
from stowplan.framework.plugin_calls import call_list, wrong
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod
from stowplan.objects.texts import described


def node_causes(
    enabled: EnabledPlugin[Any], pod: Pod, nodes: Nodes, reasons: Iterable[tuple[str, Bools]]
) -> list[NodeCause]:
    """The causes for which a plugin rejected these nodes, at least one for each node. `reasons`: of its filter."""
    found = named_causes(enabled, pod, nodes) if isinstance(enabled.plugin, CausesPlugin) else []
    left = unnamed(found, len(nodes))
    if left.any():
        found += [NodeCause(rows & left, Cause(REJECTED, text)) for text, rows in reasons if (rows & left).any()]
    return found


def named_causes(enabled: EnabledPlugin[CausesPlugin], pod: Pod, nodes: Nodes) -> list[NodeCause]:
    """What the plugin's own method names, without causes that hold for no node."""
    method = enabled.plugin.causes
    found: list[NodeCause] = call_list(enabled, method, NodeCause, pod, nodes)
    for each in found:
        rows: object = each.rows
        if not isinstance(rows, np.ndarray) or rows.dtype != np.bool_ or rows.shape != (len(nodes),):
            shape = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else described(rows)
            problem = f"the rows of a cause must be {len(nodes)} booleans, one per node; found {shape}"
            raise PluginError(enabled.name, "causes", problem)
        if problem := wrong_cause(each.cause):
            raise PluginError(enabled.name, "causes", problem)
    return [each for each in found if each.rows.any()]


def unnamed(found: Iterable[NodeCause], size: int) -> Bools:
    """The nodes that have no cause."""
    left = np.ones(size, np.bool_)
    for each in found:
        left &= ~each.rows
    return left


def pod_causes(enabled: EnabledPlugin[Any], pod: Pod, cluster: Cluster, reasons: Sequence[str]) -> list[Cause]:
    """The causes for which a plugin rejected the pod as a whole. `reasons`: of its rejection."""
    found = named_pod_causes(enabled, pod, cluster) if isinstance(enabled.plugin, PodCausesPlugin) else []
    return found or [Cause(REJECTED, reason) for reason in reasons]


def named_pod_causes(enabled: EnabledPlugin[PodCausesPlugin], pod: Pod, cluster: Cluster) -> list[Cause]:
    """What the plugin's own method names."""
    found = call_list(enabled, enabled.plugin.pod_causes, Cause, pod, cluster)
    for each in found:
        if problem := wrong_cause(each):
            raise wrong(enabled, enabled.plugin.pod_causes, each, problem)
    return found


def wrong_cause(cause: object) -> str:
    """What is wrong with a cause; empty if nothing is."""
    if not isinstance(cause, Cause):
        return f"found {described(cause)}; only Cause is right"
    for name in ("code", "text"):
        given: object = getattr(cause, name)
        if not isinstance(given, str) or not given.strip():
            return f"the {name} of a cause is a text and not empty; found {described(given)}"
    details: object = cause.details
    return _not_json(details, "details") if isinstance(details, Mapping) else f"its details are {described(details)}"


def _not_json(value: object, path: str) -> str:
    """Which part of the details JSON does not have; empty if it has all."""
    if value is None or type(value) in (str, int, bool):
        return ""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                return f"{path} has the key {described(key)}; keys are texts"
            if problem := _not_json(each, f"{path}.{key}"):
                return problem
        return ""
    if isinstance(value, tuple | list):
        return next((text for at, each in enumerate(value) if (text := _not_json(each, f"{path}[{at}]"))), "")
    return f"{path} is {described(value)}; texts, whole numbers, booleans, None, tuples and mappings of these are right"
