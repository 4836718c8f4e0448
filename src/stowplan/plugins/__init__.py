"""Policies, one file each, and the one visible table of those that come with Stowplan.

Adding a plugin touches its file, one row here, and its test.
"""

from __future__ import annotations

from stowplan.plugins.nodes.coscheduling.gang_scheduling import GangScheduling
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.plugins.nodes.default.default_binder import DefaultBinder
from stowplan.plugins.nodes.default.default_preemption import DefaultPreemption
from stowplan.plugins.nodes.default.dynamic_resources import DynamicResources
from stowplan.plugins.nodes.default.image_locality import ImageLocality
from stowplan.plugins.nodes.default.inter_pod_affinity import InterPodAffinity
from stowplan.plugins.nodes.default.node_affinity import NodeAffinityPlugin
from stowplan.plugins.nodes.default.node_declared_features import NodeDeclaredFeatures
from stowplan.plugins.nodes.default.node_name import NodeName
from stowplan.plugins.nodes.default.node_ports import NodePorts
from stowplan.plugins.nodes.default.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.default.node_unschedulable import NodeUnschedulable
from stowplan.plugins.nodes.default.node_volume_limits import NodeVolumeLimits
from stowplan.plugins.nodes.default.pod_topology_spread import PodTopologySpread
from stowplan.plugins.nodes.default.priority_sort import PrioritySort
from stowplan.plugins.nodes.default.scheduling_gates import SchedulingGates
from stowplan.plugins.nodes.default.taint_toleration import TaintToleration
from stowplan.plugins.nodes.default.volume_binding import VolumeBinding
from stowplan.plugins.nodes.default.volume_restrictions import VolumeRestrictions
from stowplan.plugins.nodes.default.volume_zone import VolumeZone
from stowplan.plugins.nodes.flavour_cluster_wide import FlavourClusterWide
from stowplan.plugins.nodes.gang_packing import GangPacking
from stowplan.plugins.nodes.gpu_sharing.fragmentation_gradient import FragmentationGradient
from stowplan.plugins.nodes.gpu_sharing.scores import (
    GpuBestFit,
    GpuClustering,
    GpuDotProduct,
    GpuPacking,
    GpuRandom,
)
from stowplan.plugins.nodes.gpu_sharing.sharing import GpuSharing
from stowplan.plugins.nodes.leaf_nodes.distribution import LeafNodeDistribution
from stowplan.plugins.nodes.leaf_nodes.taint_toleration import LeafNodeTaintToleration
from stowplan.plugins.nodes.leaf_nodes.volume_binding import LeafNodeVolumeBinding
from stowplan.plugins.nodes.pre_extender import PreExtender
from stowplan.plugins.nodes.resource_reservation.plugin import ResourceReservationPlugin
from stowplan.plugins.nodes.sp_priority.plugin import SPPriority
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin

BUILT_IN: dict[str, type] = {
    "SchedulingGates": SchedulingGates,
    "PrioritySort": PrioritySort,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinityPlugin,
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
    "GangScheduling": GangScheduling,
    "Coscheduling": Coscheduling,
    "GangPacking": GangPacking,
    "PreExtender": PreExtender,
    "FlavourClusterWide": FlavourClusterWide,
    "SPPriority": SPPriority,
    "WorkloadPolicy": WorkloadPolicyPlugin,
    "ResourceReservation": ResourceReservationPlugin,
    "GpuSharing": GpuSharing,
    "GpuRandom": GpuRandom,
    "GpuDotProduct": GpuDotProduct,
    "GpuBestFit": GpuBestFit,
    "GpuClustering": GpuClustering,
    "GpuPacking": GpuPacking,
    "FragmentationGradient": FragmentationGradient,
    # The plugins of kosmos-scheduler, as Kosmos calls them:
    "LeafNodeWorkloadPolicy": WorkloadPolicyPlugin,
    "LeafNodeTaintToleration": LeafNodeTaintToleration,
    "LeafNodeVolumeBinding": LeafNodeVolumeBinding,
    "LeafNodeDistribution": LeafNodeDistribution,
}
