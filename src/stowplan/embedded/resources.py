"""Which kinds are served, and under which paths: a table of built-in kinds, and those of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stowplan.embedded.schema import builtin_types

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS = ("get", "patch", "update")


class ServedResource(msgspec.Struct, frozen=True, eq=False):
    """A kind at one API version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    counts_generations: bool = False
    singular: str = ""
    list_kind: str = ""
    stored_as: str = ""  # the collection of another resource that stores the objects
    custom: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def collection(self) -> str:
        """The name of the collection that stores its objects; the same for all versions."""
        return self.stored_as or (f"{self.plural}.{self.group}" if self.group else self.plural)

    @property
    def type(self) -> str:
        """The name of its type in the recorded schema; "" for custom resources."""
        return "" if self.custom else builtin_types.type_of(self.api_version, self.kind)

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def list_name(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.namespaced else name

    def path(self, namespace: str, name: str = "") -> str:
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{within}/{self.plural}" + (f"/{name}" if name else "")


def _row(group: str, plural: str, kind: str, short: str = "", below: str = "", **more: Any) -> ServedResource:
    fields: dict[str, Any] = {"short_names": tuple(short.split()), "subresources": tuple(below.split()), **more}
    return ServedResource(group, "v1", plural, kind, **fields)


_apps, _storage, _dra = "apps", "storage.k8s.io", "resource.k8s.io"
_rbac = "rbac.authorization.k8s.io"
_counted: dict[str, Any] = {"counts_generations": True}
_workload: dict[str, Any] = {"counts_generations": True, "categories": ("all",)}
_wide: dict[str, Any] = {"namespaced": False}
_review: dict[str, Any] = {"namespaced": False, "verbs": ("create",)}

BUILT_IN: tuple[ServedResource, ...] = (
    _row("", "configmaps", "ConfigMap", "cm"),
    _row("", "endpoints", "Endpoints", "ep"),
    _row("", "events", "Event", "ev"),
    _row("", "limitranges", "LimitRange", "limits"),
    _row("", "namespaces", "Namespace", "ns", "finalize status", namespaced=False,
         verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection")),
    _row("", "nodes", "Node", "no", "status", **_wide),
    _row("", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "status"),
    _row("", "persistentvolumes", "PersistentVolume", "pv", "status", **_wide),
    _row("", "pods", "Pod", "po", "binding eviction status", **_workload),
    _row("", "replicationcontrollers", "ReplicationController", "rc", "scale status", **_workload),
    _row("", "resourcequotas", "ResourceQuota", "quota", "status"),
    _row("", "secrets", "Secret"),
    _row("", "serviceaccounts", "ServiceAccount", "sa", "token"),
    _row("", "services", "Service", "svc", "status", categories=("all",)),
    _row(_apps, "controllerrevisions", "ControllerRevision"),
    _row(_apps, "daemonsets", "DaemonSet", "ds", "status", **_workload),
    _row(_apps, "deployments", "Deployment", "deploy", "scale status", **_workload),
    _row(_apps, "replicasets", "ReplicaSet", "rs", "scale status", **_workload),
    _row(_apps, "statefulsets", "StatefulSet", "sts", "scale status", **_workload),
    ServedResource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
                   short_names=("hpa",), categories=("all",), subresources=("status",)),
    _row("batch", "cronjobs", "CronJob", "cj", "status", **_workload),
    _row("batch", "jobs", "Job", "", "status", **_workload),
    _row("discovery.k8s.io", "endpointslices", "EndpointSlice", **_counted),
    _row("networking.k8s.io", "ingressclasses", "IngressClass", **_wide, **_counted),
    _row("networking.k8s.io", "ingresses", "Ingress", "ing", "status", **_counted),
    _row("networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol", **_counted),
    _row("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", "status", **_counted),
    _row("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", **_wide, **_counted),
    _row(_storage, "csidrivers", "CSIDriver", **_wide),
    _row(_storage, "csinodes", "CSINode", **_wide),
    _row(_storage, "csistoragecapacities", "CSIStorageCapacity"),
    _row(_storage, "storageclasses", "StorageClass", "sc", **_wide),
    _row(_storage, "volumeattachments", "VolumeAttachment", "", "status", **_wide),
    _row(_dra, "deviceclasses", "DeviceClass", **_wide, **_counted),
    _row(_dra, "resourceclaims", "ResourceClaim", "", "status"),
    _row(_dra, "resourceclaimtemplates", "ResourceClaimTemplate"),
    _row(_dra, "resourceslices", "ResourceSlice", **_wide, **_counted),
    _row("coordination.k8s.io", "leases", "Lease"),
    _row("events.k8s.io", "events", "Event", "ev", stored_as="events"),
    _row(_rbac, "clusterrolebindings", "ClusterRoleBinding", **_wide),
    _row(_rbac, "clusterroles", "ClusterRole", **_wide),
    _row(_rbac, "rolebindings", "RoleBinding"),
    _row(_rbac, "roles", "Role"),
    _row("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "crd crds", "status",
         categories=("api-extensions",), **_wide, **_counted),
    _row("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", **_review),
    _row("authentication.k8s.io", "tokenreviews", "TokenReview", **_review),
    _row("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=("create",)),
    _row("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", **_review),
    _row("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", **_review),
    _row("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", **_review),
)  # fmt: skip


class ResourceCatalogue:
    """The kinds that are served now, by group and version. The preferred version of a group comes first."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[str, ServedResource]]] = {}
        self._of_kind: dict[tuple[str, str], ServedResource] = {}  # what was asked for since the last change
        for resource in BUILT_IN:
            self.add(resource)

    def add(self, resource: ServedResource) -> None:
        self._groups.setdefault(resource.group, {}).setdefault(resource.version, {})[resource.plural] = resource
        self._of_kind.clear()

    def remove(self, group: str, plural: str) -> None:
        self._of_kind.clear()
        versions = self._groups.get(group, {})
        for version in list(versions):
            versions[version].pop(plural, None)
            if not versions[version]:
                del versions[version]
        if not versions:
            self._groups.pop(group, None)

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._groups.get(group, {}).get(version, {}).get(plural)

    def serves(self, group: str, version: str) -> bool:
        return version in self._groups.get(group, {})

    def of_kind(self, api_version: str, kind: str) -> ServedResource | None:
        asked = api_version, kind
        if asked not in self._of_kind:
            group, _, version = api_version.rpartition("/")
            found = next((each for each in self.served(group, version) if each.kind == kind), None)
            if found is None:
                return None  # there is no end of kinds that are not served
            self._of_kind[asked] = found
        return self._of_kind[asked]

    def by_collection(self, name: str) -> ServedResource | None:
        return next((found for found in self if found.collection == name), None)

    def groups(self) -> list[str]:
        return list(self._groups)

    def versions(self, group: str) -> list[str]:
        return list(self._groups.get(group, ()))

    def served(self, group: str, version: str) -> list[ServedResource]:
        return sorted(self._groups.get(group, {}).get(version, {}).values(), key=lambda found: found.plural)

    def __iter__(self) -> Iterator[ServedResource]:
        for group, versions in self._groups.items():
            for version in versions:
                yield from self.served(group, version)
