"""Validation: what the API server refuses with 422, by collection, for every write and for updates.

Only a part of the rules of Kubernetes is here: the rules that users meet (names, labels, containers, selectors,
quantities, immutable fields), and the rules that the embedded cluster relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.validation import (
    autoscaling,
    cron_jobs,
    definitions,
    events,
    limit_ranges,
    metadata,
    networking,
    nodes,
    pods,
    policies,
    quotas,
    rbac,
    resource_claims,
    resource_slices,
    services,
    storage,
    workloads,
)

_EVERY_WRITE: dict[str, Callable[[Document], Iterator[StatusCause]]] = {
    "pods": pods.check,
    "deployments.apps": workloads.check_deployment,
    "replicasets.apps": workloads.check,
    "statefulsets.apps": workloads.check,
    "daemonsets.apps": workloads.check,
    "jobs.batch": workloads.check_job,
    "cronjobs.batch": cron_jobs.check,
    "replicationcontrollers": workloads.check_replication_controller,
    "nodes": nodes.check,
    "services": services.check,
    "endpoints": networking.check_endpoints,
    "endpointslices.discovery.k8s.io": networking.check_endpoint_slice,
    "ingresses.networking.k8s.io": networking.check_ingress,
    "ingressclasses.networking.k8s.io": networking.check_ingress_class,
    "horizontalpodautoscalers.autoscaling": autoscaling.check,
    "persistentvolumeclaims": storage.check_claim,
    "persistentvolumes": storage.check_volume,
    "storageclasses.storage.k8s.io": storage.check_storage_class,
    "poddisruptionbudgets.policy": policies.check_budget,
    "priorityclasses.scheduling.k8s.io": policies.check_priority_class,
    "limitranges": limit_ranges.check,
    "resourcequotas": quotas.check,
    "deviceclasses.resource.k8s.io": resource_slices.check_class,
    "resourceslices.resource.k8s.io": resource_slices.check_slice,
    "resourceclaims.resource.k8s.io": resource_claims.check,
    "resourceclaimtemplates.resource.k8s.io": resource_claims.check_template,
    "events": events.check,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.check,
    "roles.rbac.authorization.k8s.io": rbac.check_role,
    "clusterroles.rbac.authorization.k8s.io": rbac.check_cluster_role,
    "rolebindings.rbac.authorization.k8s.io": rbac.check_role_binding,
    "clusterrolebindings.rbac.authorization.k8s.io": rbac.check_cluster_role_binding,
}

_UPDATES: dict[str, Callable[[Document, Document], Iterator[StatusCause]]] = {
    "pods": pods.check_update,
    "deployments.apps": workloads.check_selector,
    "replicasets.apps": workloads.check_selector,
    "statefulsets.apps": workloads.check_stateful_set_update,
    "daemonsets.apps": workloads.check_selector,
    "jobs.batch": workloads.check_job_update,
    "persistentvolumeclaims": storage.check_claim_update,
    "priorityclasses.scheduling.k8s.io": policies.check_priority_class_update,
    "resourcequotas": quotas.check_update,
    "endpointslices.discovery.k8s.io": networking.check_endpoint_slice_update,
    "ingressclasses.networking.k8s.io": networking.check_ingress_class_update,
    "storageclasses.storage.k8s.io": storage.check_storage_class_update,
    "resourceslices.resource.k8s.io": resource_slices.check_slice_update,
    "resourceclaims.resource.k8s.io": resource_claims.check_update,
    "resourceclaimtemplates.resource.k8s.io": resource_claims.check_update,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.check_update,
    "rolebindings.rbac.authorization.k8s.io": rbac.check_binding_update,
    "clusterrolebindings.rbac.authorization.k8s.io": rbac.check_binding_update,
}

_STATUS: dict[str, Callable[[Document, Document], Iterator[StatusCause]]] = {
    "resourceclaims.resource.k8s.io": resource_claims.check_status,
}


def problems(resource: ServedResource, document: Document, old: Document | None = None) -> list[StatusCause]:
    """All invalid fields of a document, in the order of Kubernetes."""
    found = list(metadata.check(resource, document))
    if resource.collection in _EVERY_WRITE:
        found += _EVERY_WRITE[resource.collection](document)
    if old is not None and resource.collection in _UPDATES:
        found += _UPDATES[resource.collection](document, old)
    return found


def status_problems(resource: ServedResource, document: Document, old: Document) -> list[StatusCause]:
    """The invalid fields of a status that is written."""
    check = _STATUS.get(resource.collection)
    return [] if check is None else list(check(document, old))
