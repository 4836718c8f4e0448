"""Policies, one file each, and the one visible table of those that come with Stowplan.

Adding a plugin touches its file, one row here, and its test.
"""

from __future__ import annotations

from stowplan.plugins.nodes.coscheduling import Coscheduling
from stowplan.plugins.nodes.default_binder import DefaultBinder
from stowplan.plugins.nodes.default_preemption import DefaultPreemption
from stowplan.plugins.nodes.dynamic_resources import DynamicResources
from stowplan.plugins.nodes.flavour_cluster_wide import FlavourClusterWide
from stowplan.plugins.nodes.image_locality import ImageLocality
from stowplan.plugins.nodes.inter_pod_affinity import InterPodAffinity
from stowplan.plugins.nodes.node_affinity import NodeAffinity
from stowplan.plugins.nodes.node_declared_features import NodeDeclaredFeatures
from stowplan.plugins.nodes.node_name import NodeName
from stowplan.plugins.nodes.node_ports import NodePorts
from stowplan.plugins.nodes.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from stowplan.plugins.nodes.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.node_unschedulable import NodeUnschedulable
from stowplan.plugins.nodes.node_volume_limits import NodeVolumeLimits
from stowplan.plugins.nodes.pod_topology_spread import PodTopologySpread
from stowplan.plugins.nodes.pre_extender import PreExtender
from stowplan.plugins.nodes.priority_sort import PrioritySort
from stowplan.plugins.nodes.resource_reservation import ResourceReservation
from stowplan.plugins.nodes.scheduling_gates import SchedulingGates
from stowplan.plugins.nodes.sp_priority import SPPriority
from stowplan.plugins.nodes.taint_toleration import TaintToleration
from stowplan.plugins.nodes.volume_binding import VolumeBinding
from stowplan.plugins.nodes.volume_restrictions import VolumeRestrictions
from stowplan.plugins.nodes.volume_zone import VolumeZone
from stowplan.plugins.nodes.workload_policy import WorkloadPolicy

BUILT_IN: dict[str, type] = {
    "SchedulingGates": SchedulingGates,
    "PrioritySort": PrioritySort,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeZone": VolumeZone,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "DynamicResources": DynamicResources,
    "DefaultPreemption": DefaultPreemption,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "DefaultBinder": DefaultBinder,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
    "Coscheduling": Coscheduling,
    "PreExtender": PreExtender,
    "FlavourClusterWide": FlavourClusterWide,
    "SPPriority": SPPriority,
    "WorkloadPolicy": WorkloadPolicy,
    "ResourceReservation": ResourceReservation,
    "LeafNodeWorkloadPolicy": WorkloadPolicy,  # as Kosmos calls it
}
