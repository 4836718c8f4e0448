"""Plugins, fields and kinds of older versions of kube-scheduler, and where each of them went."""

from __future__ import annotations

import re

_LIMITS = "NodeVolumeLimits counts the volumes of every driver"
_FIT = "in the arguments of NodeResourcesFit"
_SPREAD = "PodTopologySpread spreads the pods of Services, ReplicaSets and StatefulSets by default"

PLUGINS = {
    "AzureDiskLimits": _LIMITS,
    "CinderLimits": _LIMITS,
    "EBSLimits": _LIMITS,
    "GCEPDLimits": _LIMITS,
    "DefaultPodTopologySpread": _SPREAD,
    "SelectorSpread": _SPREAD,
    "NodeLabel": "pods ask for labels with nodeAffinity; addedAffinity in the arguments of NodeAffinity asks for all",
    "NodePreferAvoidPods": "taint the nodes with the effect PreferNoSchedule; TaintToleration avoids them",
    "NodeResourcesLeastAllocated": "NodeResourcesFit scores so by default (scoringStrategy.type: LeastAllocated)",
    "NodeResourcesMostAllocated": f"write scoringStrategy.type: MostAllocated {_FIT}",
    "RequestedToCapacityRatio": f"write scoringStrategy.type: RequestedToCapacityRatio, and its shape, {_FIT}",
    "ServiceAffinity": "pods ask for it with podAffinity to the labels of the Service's pods (InterPodAffinity)",
}
# Names of a Policy, which somebody may try as names of plugins.
_PREDICATES_AND_PRIORITIES = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "CheckNodeUnschedulable": "NodeUnschedulable",
    "CheckVolumeBinding": "VolumeBinding",
    "EvenPodsSpread": "PodTopologySpread",
    "HostName": "NodeName",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "MatchInterPodAffinity": "InterPodAffinity",
    "MatchNodeSelector": "NodeAffinity",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits",
    "NoDiskConflict": "VolumeRestrictions",
    "NoVolumeZoneConflict": "VolumeZone",
    "NodeAffinityPriority": "NodeAffinity",
    "PodFitsHostPorts": "NodePorts",
    "PodFitsResources": "NodeResourcesFit",
    "PodToleratesNodeTaints": "TaintToleration",
    "SelectorSpreadPriority": "PodTopologySpread",
    "TaintTolerationPriority": "TaintToleration",
}
PLUGINS |= {name: f"the plugin {plugin} does it" for name, plugin in _PREDICATES_AND_PRIORITIES.items()}
NAMES_IN_1_36 = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))  # it refuses them by name

POLICY = "a Policy is not read since kube-scheduler 1.23: list plugins in the profiles of a KubeSchedulerConfiguration"
_PAGES = "it was removed: the pages are on the port of --secure-port"
_FIELDS = {
    "algorithmSource": POLICY,
    "bindTimeoutSeconds": "it is bindTimeoutSeconds in the arguments of VolumeBinding now",
    "disablePreemption": "it was removed: disable DefaultPreemption at postFilter",
    "featureGates": "they are a flag: --feature-gates",
    "hardPodAffinitySymmetricWeight": "it is hardPodAffinityWeight in the arguments of InterPodAffinity now",
    "healthzBindAddress": f"{_PAGES} (/healthz, /livez, /readyz)",
    "leaderElection.lockObjectName": "it is resourceName now",
    "leaderElection.lockObjectNamespace": "it is resourceNamespace now",
    "metricsBindAddress": f"{_PAGES} (/metrics)",
    "pluginConfig": "it is a field of each profile: profiles[0].pluginConfig",
    "plugins": "it is a field of each profile: profiles[0].plugins",
    "profiles[].plugins.unreserve": "list the plugin at reserve, which has both",
    "schedulerName": "it is a field of each profile: profiles[0].schedulerName",
}


def field(path: str) -> str:
    """Return where the field at this path of a document went; empty if it never was one."""
    return _FIELDS.get(re.sub(r"\[\d+\]", "[]", path), "")
