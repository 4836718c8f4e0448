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


class ApiResource(msgspec.Struct, frozen=True):
    kind: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    fields: str = ""  # a field selector: only these are listed and watched
    own_type: type[Object] | None = None  # what its documents become, if that is not in objects.kinds
    optional: bool = False  # not every server has it: one without its definition, say

    @property
    def always_served(self) -> bool:
        """Whether every server has it, at the one version that is named."""
        return len(self.versions) == 1 and not self.optional

    @property
    def object_type(self) -> type[Object]:
        return self.own_type or kinds.KINDS.get(self.kind, Object)

    def decode(self, document: bytes) -> Object:
        """An object of this kind from its JSON. Raises `StowplanError` or `MsgspecError` if it cannot be read."""
        found = self.object_type
        if kinds.KINDS.get(self.kind) is found:
            return kinds.decode(found, document)
        return kinds.convert(found, msgspec.json.decode(document))

    def at(self, version: str) -> ApiResource:
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

RESOURCES: dict[str, ApiResource] = {
    resource.kind: resource
    for resource in (
        ApiResource("Pod", "pods", fields=UNFINISHED),
        ApiResource("Node", "nodes", namespaced=False),
        ApiResource("Namespace", "namespaces", namespaced=False),
        ApiResource("Service", "services"),
        ApiResource("ReplicationController", "replicationcontrollers"),
        ApiResource("ReplicaSet", "replicasets", "apps"),
        ApiResource("StatefulSet", "statefulsets", "apps"),
        ApiResource("Deployment", "deployments", "apps"),
        ApiResource("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
        ApiResource("PriorityClass", "priorityclasses", _scheduling, namespaced=False),
        ApiResource("PersistentVolume", "persistentvolumes", namespaced=False),
        ApiResource("PersistentVolumeClaim", "persistentvolumeclaims"),
        ApiResource("StorageClass", "storageclasses", _storage, namespaced=False),
        ApiResource("CSINode", "csinodes", _storage, namespaced=False),
        ApiResource("CSIDriver", "csidrivers", _storage, namespaced=False),
        ApiResource("CSIStorageCapacity", "csistoragecapacities", _storage),
        ApiResource("VolumeAttachment", "volumeattachments", _storage, namespaced=False),
        ApiResource("DeviceClass", "deviceclasses", _resource, namespaced=False),
        ApiResource("ResourceClaim", "resourceclaims", _resource),
        ApiResource("ResourceSlice", "resourceslices", _resource, namespaced=False),
        ApiResource("PodGroup", "podgroups", _scheduling, ("v1beta1", "v1alpha2"), optional=True),
        ApiResource("SigsPodGroup", "podgroups", "scheduling.x-k8s.io", ("v1alpha1",), optional=True),
        ApiResource("Workload", "workloads", _scheduling, ("v1beta1", "v1alpha2")),
        ApiResource("WorkloadPolicy", "workloadpolicies", "kosmos.io", ("v1alpha1",), optional=True),
        ApiResource(
            "ResourceReservation", "resourcereservations", "scheduling.kubenexus.io", ("v1alpha1",), optional=True
        ),
        ApiResource("ManagedCluster", "managedclusters", _fleet, namespaced=False, optional=True),
        ApiResource("ManagedClusterSet", "managedclustersets", _fleet, ("v1beta2",), namespaced=False, optional=True),
        ApiResource("ManagedClusterSetBinding", "managedclustersetbindings", _fleet, ("v1beta2",), optional=True),
        ApiResource("AddOnPlacementScore", "addonplacementscores", _fleet, ("v1alpha1",), optional=True),
        ApiResource("Placement", "placements", _fleet, ("v1beta1",), optional=True),
        ApiResource("PlacementDecision", "placementdecisions", _fleet, ("v1beta1",), optional=True),
        ApiResource("Lease", "leases", "coordination.k8s.io"),
        ApiResource("Event", "events", "events.k8s.io"),
    )
}
PODS, EVENTS, LEASES = RESOURCES["Pod"], RESOURCES["Event"], RESOURCES["Lease"]
