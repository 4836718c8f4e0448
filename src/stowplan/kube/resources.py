"""The kinds of the API: group, supported versions (the preferred one first), plural, scope.

`RESOURCES` has those that are known; a plugin may bring others (`custom`). If a resource names no versions, the
versions come from discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from stowplan.objects import kinds
from stowplan.objects.applications import POD_GROUP
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.meta import Object

# kube-scheduler ignores finished pods, too.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
# A field selector has no "or", so all other phases are named.
FINISHED = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"


class ApiResource(msgspec.Struct, frozen=True):
    kind: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    fields: str = ""  # a field selector for lists and watches
    labels: str = ""  # a label selector for lists and watches
    own_type: type[Object] | None = None  # the type of its objects, if it is not in objects.kinds
    optional: bool = False  # not served by every server: a custom resource, for example
    api_kind: str = ""  # its kind in documents, if that is another than `kind`
    brought_by: str = ""  # the plugins that bring it; empty for a known one

    @property
    def always_served(self) -> bool:
        """True if every server serves it, at the one version that it names."""
        return len(self.versions) == 1 and not self.optional

    @property
    def object_type(self) -> type[Object]:
        return self.own_type or kinds.KINDS.get(self.kind, Object)

    def decode(self, document: bytes) -> Object:
        """An object of this kind from its JSON. Raises `ConfigError` if it cannot be read, and nothing else."""
        return kinds.decode(self.object_type, document)

    def matches(self, document: Mapping[str, Any]) -> bool:
        """True if a document of kubectl or of a manifest is an object of this resource, at any version."""
        group, slash, _ = str(document.get("apiVersion", "")).rpartition("/")
        return (group if slash else "", document.get("kind")) == (self.group, self.api_kind or self.kind)

    def same_as(self, other: ApiResource) -> bool:
        """True if it has the same objects; another plugin may have brought it."""
        return msgspec.structs.replace(self, brought_by=other.brought_by) == other

    def unreadable(self, error: Exception, key: str = "", so: str = "is skipped") -> str:
        """What is told of an object that cannot be read, and so …"""
        bringer = f" of plugin {self.brought_by}" if self.brought_by else ""
        return f"{self.kind}{bringer}: {key or 'a document'} cannot be read and {so}: {error}"

    def at(self, version: str) -> ApiResource:
        """The same resource at one version."""
        return msgspec.structs.replace(self, versions=(version,), optional=False)

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.versions[0]}" if self.group else f"/api/{self.versions[0]}"

    def collection(self, namespace: str = "") -> str:
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{self.root}{within}/{self.plural}"

    def path(self, key: str, subresource: str = "") -> str:
        """The path of an object by its key (namespace/name, or the name alone)."""
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
        ApiResource("ResourceClaimTemplate", "resourceclaimtemplates", _resource),
        ApiResource("ResourceSlice", "resourceslices", _resource, namespaced=False),
        ApiResource("PodGroup", "podgroups", _scheduling, ("v1beta1", "v1alpha2"), optional=True),
        ApiResource("SigsPodGroup", "podgroups", "scheduling.x-k8s.io", ("v1alpha1",), optional=True),
        ApiResource("FinishedMember", "pods", fields=FINISHED, labels=POD_GROUP, api_kind="Pod"),
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


def custom(resource: CustomResource, brought_by: str = "") -> ApiResource:
    """The resource that a plugin brings. Its CRD may be installed later, or never."""
    return ApiResource(
        resource.name,
        resource.plural,
        resource.group,
        resource.versions,
        resource.namespaced,
        own_type=resource.object_type,
        optional=True,
        api_kind=resource.api_kind,
        brought_by=brought_by,
    )


PODS, EVENTS, LEASES = RESOURCES["Pod"], RESOURCES["Event"], RESOURCES["Lease"]
