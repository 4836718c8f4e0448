"""Configurations for tests, and the plugins they may name: kube-scheduler 1.36's with the points they have there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from stowplan.framework.config import configuration
from stowplan.objects.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FLAVOUR = "FlavourClusterWide"

DEFAULT_FILTERS = (
    "NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, "
    "NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources, "
    "NodeDeclaredFeatures"
)
DEFAULT_SCORES = (
    "TaintToleration 3, NodeAffinity 2, NodeResourcesFit 1, VolumeBinding 1, PodTopologySpread 2, InterPodAffinity 2, "
    "DynamicResources 2, NodeResourcesBalancedAllocation 1, ImageLocality 1"
)

POINTS_OF = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodePorts": "preFilter filter",
    "NodeResourcesFit": "preFilter filter preScore score placementScore",
    "VolumeRestrictions": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "VolumeBinding": "preFilter filter reserve preBind preScore score",
    "VolumeZone": "preFilter filter",
    "PodTopologySpread": "preFilter filter preScore score",
    "InterPodAffinity": "preFilter filter preScore score",
    "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
    "DefaultPreemption": "preEnqueue postFilter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "preFilter filter",
    "TopologyPlacementGenerator": "placementGenerate",
    FLAVOUR: "score postBind",
    "SPPriority": "score",
    "Coscheduling": "queueSort preFilter permit",
}


def implements(name: str) -> Collection[str] | None:
    points = POINTS_OF.get(name)
    return None if points is None else points.split()


def load(text: str | bytes | dict[str, Any], file: str = "") -> configuration.Configuration:
    return configuration.load(text, implements=implements, known=POINTS_OF, file=file)


def of_file(body: str) -> configuration.Configuration:
    return load(HEAD + body)


def of_profile(body: str) -> configuration.ProfileSpec:
    """The one profile whose text, as YAML's flow style, is `body`."""
    return of_file(f"profiles: [{{{body}}}]").profiles[0]


def of_plugins(body: str) -> configuration.ProfileSpec:
    return of_profile(f"plugins: {{{body}}}")


def args_of(name: str, args: str) -> dict[str, Any]:
    return of_profile(f"pluginConfig: [{{name: {name}, args: {args}}}]").plugin_args[name]


def at(profile: configuration.ProfileSpec, point: str) -> str:
    """`TaintToleration 3, NodeAffinity 2` at a point with weights, names alone elsewhere."""
    return ", ".join(f"{each.name} {each.weight}" if each.weight else each.name for each in profile.points[point])


def refused(text: str | bytes | dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert str(caught.value) == error
    assert "\n" not in str(caught.value)
