"""Policies, one file each, and the one visible table of those that come with Stowplan.

Adding a plugin touches its file, one row here, and its test.
"""

from __future__ import annotations

from stowplan.framework.plugin_table import PluginTable

# By the plugin's name: its module here, and its class.
BUILT_IN = PluginTable(
    __name__,
    {
        "SchedulingGates": "nodes.default.scheduling_gates:SchedulingGates",
        "PrioritySort": "nodes.default.priority_sort:PrioritySort",
        "NodeUnschedulable": "nodes.default.node_unschedulable:NodeUnschedulable",
        "NodeName": "nodes.default.node_name:NodeName",
        "TaintToleration": "nodes.default.taint_toleration:TaintToleration",
        "NodeAffinity": "nodes.default.node_affinity:NodeAffinityPlugin",
        "NodePorts": "nodes.default.node_ports:NodePorts",
        "NodeResourcesFit": "nodes.default.node_resources_fit:NodeResourcesFit",
        "VolumeRestrictions": "nodes.default.volume_restrictions:VolumeRestrictions",
        "NodeVolumeLimits": "nodes.default.node_volume_limits:NodeVolumeLimits",
        "VolumeBinding": "nodes.default.volume_binding:VolumeBinding",
        "VolumeZone": "nodes.default.volume_zone:VolumeZone",
        "PodTopologySpread": "nodes.default.pod_topology_spread:PodTopologySpread",
        "InterPodAffinity": "nodes.default.inter_pod_affinity:InterPodAffinity",
        "DynamicResources": "nodes.default.dynamic_resources:DynamicResources",
        "DefaultPreemption": "nodes.default.default_preemption:DefaultPreemption",
        "NodeResourcesBalancedAllocation": (
            "nodes.default.node_resources_balanced_allocation:NodeResourcesBalancedAllocation"
        ),
        "ImageLocality": "nodes.default.image_locality:ImageLocality",
        "DefaultBinder": "nodes.default.default_binder:DefaultBinder",
        "NodeDeclaredFeatures": "nodes.default.node_declared_features:NodeDeclaredFeatures",
        "GangScheduling": "nodes.coscheduling.gang_scheduling:GangScheduling",
        "Coscheduling": "nodes.coscheduling.plugin:Coscheduling",
        "GangPacking": "nodes.gang_packing:GangPacking",
        "PreExtender": "nodes.pre_extender:PreExtender",
        "FlavourClusterWide": "nodes.flavour_cluster_wide:FlavourClusterWide",
        "SPPriority": "nodes.sp_priority.plugin:SPPriority",
        "WorkloadPolicy": "nodes.workload_policy.plugin:WorkloadPolicyPlugin",
        "ResourceReservation": "nodes.resource_reservation.plugin:ResourceReservationPlugin",
        "GpuSharing": "nodes.gpu_sharing.sharing:GpuSharing",
        "GpuRandom": "nodes.gpu_sharing.scores:GpuRandom",
        "GpuDotProduct": "nodes.gpu_sharing.scores:GpuDotProduct",
        "GpuBestFit": "nodes.gpu_sharing.scores:GpuBestFit",
        "GpuClustering": "nodes.gpu_sharing.scores:GpuClustering",
        "GpuPacking": "nodes.gpu_sharing.scores:GpuPacking",
        "FragmentationGradient": "nodes.gpu_sharing.fragmentation_gradient:FragmentationGradient",
        # The plugins of kosmos-scheduler, as Kosmos calls them:
        "LeafNodeWorkloadPolicy": "nodes.workload_policy.plugin:WorkloadPolicyPlugin",
        "LeafNodeTaintToleration": "nodes.leaf_nodes.taint_toleration:LeafNodeTaintToleration",
        "LeafNodeVolumeBinding": "nodes.leaf_nodes.volume_binding:LeafNodeVolumeBinding",
        "LeafNodeDistribution": "nodes.leaf_nodes.distribution:LeafNodeDistribution",
    },
)
