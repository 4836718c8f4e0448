"""Manifests of workloads, and short questions about what became of them."""

from __future__ import annotations

from typing import Any

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "x:1"}]}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 5
  parallelism: 2
  backoffLimit: 2
  template:
    metadata: {annotations: {stowplan.io/run-seconds: "10"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: "x:1"}]}
"""
SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "x:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
"""
FAST = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: pretended.example\n"


def names(documents: list[dict[str, Any]]) -> list[str]:
    return [document["metadata"]["name"] for document in documents]


def images(pods: list[dict[str, Any]]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


def phases(pods: list[dict[str, Any]]) -> list[str]:
    return sorted(pod["status"]["phase"] for pod in pods)


def condition(document: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in document["status"]["conditions"] if each["type"] == kind)
