"""What the API server fills in before an object is stored, by collection.

`DEFAULTS` apply to every write, so an update without a field does not change it. `ADMIT` applies to new objects and
may read other objects: priority classes, service accounts, addresses. Both change the document in place.
"""

from __future__ import annotations

from collections.abc import Callable

from stowplan.embedded.admission import (
    autoscaling,
    definitions,
    devices,
    limit_ranges,
    namespaces,
    network_policies,
    networking,
    nodes,
    pods,
    priority_classes,
    rbac,
    secrets,
    services,
    storage,
    workloads,
)
from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document

DEFAULTS: dict[str, Callable[[Document], None]] = {
    "pods": pods.defaults,
    "deployments.apps": workloads.deployment,
    "replicasets.apps": workloads.replica_set,
    "statefulsets.apps": workloads.stateful_set,
    "daemonsets.apps": workloads.daemon_set,
    "replicationcontrollers": workloads.replication_controller,
    "jobs.batch": workloads.job,
    "cronjobs.batch": workloads.cron_job,
    "services": services.defaults,
    "endpoints": networking.endpoints,
    "endpointslices.discovery.k8s.io": networking.endpoint_slice,
    "ingressclasses.networking.k8s.io": networking.ingress_class,
    "horizontalpodautoscalers.autoscaling": autoscaling.defaults,
    "persistentvolumes": storage.volume,
    "persistentvolumeclaims": storage.claim,
    "storageclasses.storage.k8s.io": storage.storage_class,
    "csidrivers.storage.k8s.io": storage.csi_driver,
    "resourceclaims.resource.k8s.io": devices.claim,
    "resourceclaimtemplates.resource.k8s.io": devices.template,
    "limitranges": limit_ranges.defaults,
    "namespaces": namespaces.defaults,
    "networkpolicies.networking.k8s.io": network_policies.defaults,
    "secrets": secrets.defaults,
    "priorityclasses.scheduling.k8s.io": priority_classes.defaults,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.defaults,
    "rolebindings.rbac.authorization.k8s.io": rbac.binding,
    "clusterrolebindings.rbac.authorization.k8s.io": rbac.binding,
}

ADMIT: dict[str, Callable[[Document, AdmissionContext], None]] = {
    "pods": pods.admit,
    "services": services.admit,
    "ingresses.networking.k8s.io": networking.admit_ingress,
    "namespaces": namespaces.admit,
    "jobs.batch": workloads.admit_job,
    "persistentvolumes": storage.admit_volume,
    "persistentvolumeclaims": storage.admit_claim,
    "nodes": nodes.admit,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.admit,
}

# What a new status looks like when it is stored.
STATUS: dict[str, Callable[[Document, Document], Document]] = {"resourceclaims.resource.k8s.io": devices.claim_status}

# A client cannot set the status of a new object, except for nodes (kubelets register with a status) and a few others.
KEEPS_STATUS = ("nodes", "events", "leases.coordination.k8s.io")
