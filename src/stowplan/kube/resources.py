"""Which kind is served where: group, versions we can read (the one we like best first), plural, namespaced or not.

A kind of a plugin's own is a `Resource` like any other; where its versions are not known, the server is asked.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from stowplan.objects import kinds
from stowplan.objects.meta import Object

# kube-scheduler does not look at pods that have ended, either.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class Resource(msgspec.Struct, frozen=True):
    kind: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    fields: str = ""  # a field selector: only these are listed and watched
    own_type: type[Object] | None = None  # what its documents become, if that is not in objects.kinds
    optional: bool = False  # not every server has it: one without its definition, say

    @property
    def sure(self) -> bool:
        """Whether every server has it, at the one version that is named."""
        return len(self.versions) == 1 and not self.optional

    @property
    def object_type(self) -> type[Object]:
        return self.own_type or kinds.KINDS.get(self.kind, Object)

    def at(self, version: str) -> Resource:
        """The same, served at this version."""
        return msgspec.structs.replace(self, versions=(version,), optional=False)

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.versions[0]}" if self.group else f"/api/{self.versions[0]}"

    def collection(self, namespace: str = "") -> str:
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{self.root}{within}/{self.plural}"

    def path(self, key: str, subresource: str = "") -> str:
        """Where the object with this key (namespace/name, or the name alone) is."""
        namespace, _, name = key.rpartition("/")
        below = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace)}/{quote(name, safe='')}{below}"


_storage, _scheduling, _resource = "storage.k8s.io", "scheduling.k8s.io", "resource.k8s.io"
_fleet = "cluster.open-cluster-management.io"

RESOURCES: dict[str, Resource] = {
    resource.kind: resource
    for resource in (
        Resource("Pod", "pods", fields=UNFINISHED),
        Resource("Node", "nodes", namespaced=False),
        Resource("Namespace", "namespaces", namespaced=False),
        Resource("Service", "services"),
        Resource("ReplicationController", "replicationcontrollers"),
        Resource("ReplicaSet", "replicasets", "apps"),
        Resource("StatefulSet", "statefulsets", "apps"),
        Resource("Deployment", "deployments", "apps"),
        Resource("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
        Resource("PriorityClass", "priorityclasses", _scheduling, namespaced=False),
        Resource("PersistentVolume", "persistentvolumes", namespaced=False),
        Resource("PersistentVolumeClaim", "persistentvolumeclaims"),
        Resource("StorageClass", "storageclasses", _storage, namespaced=False),
        Resource("CSINode", "csinodes", _storage, namespaced=False),
        Resource("CSIDriver", "csidrivers", _storage, namespaced=False),
        Resource("CSIStorageCapacity", "csistoragecapacities", _storage),
        Resource("VolumeAttachment", "volumeattachments", _storage, namespaced=False),
        Resource("DeviceClass", "deviceclasses", _resource, namespaced=False),
        Resource("ResourceClaim", "resourceclaims", _resource),
        Resource("ResourceSlice", "resourceslices", _resource, namespaced=False),
        Resource("PodGroup", "podgroups", _scheduling, ("v1beta1", "v1alpha2"), optional=True),
        Resource("SigsPodGroup", "podgroups", "scheduling.x-k8s.io", ("v1alpha1",), optional=True),
        Resource("Workload", "workloads", _scheduling, ("v1beta1", "v1alpha2")),
        Resource("WorkloadPolicy", "workloadpolicies", "kosmos.io", ("v1alpha1",), optional=True),
        Resource(
            "ResourceReservation", "resourcereservations", "scheduling.kubenexus.io", ("v1alpha1",), optional=True
        ),
        Resource("ManagedCluster", "managedclusters", _fleet, namespaced=False, optional=True),
        Resource("ManagedClusterSet", "managedclustersets", _fleet, ("v1beta2",), namespaced=False, optional=True),
        Resource("ManagedClusterSetBinding", "managedclustersetbindings", _fleet, ("v1beta2",), optional=True),
        Resource("AddOnPlacementScore", "addonplacementscores", _fleet, ("v1alpha1",), optional=True),
        Resource("Placement", "placements", _fleet, ("v1beta1",), optional=True),
        Resource("PlacementDecision", "placementdecisions", _fleet, ("v1beta1",), optional=True),
        Resource("Lease", "leases", "coordination.k8s.io"),
        Resource("Event", "events", "events.k8s.io"),
    )
}
PODS, EVENTS, LEASES = RESOURCES["Pod"], RESOURCES["Event"], RESOURCES["Lease"]
