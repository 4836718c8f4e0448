"""The objects of the demo, as documents for the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.apps.up.command import node


def pool_node(pool: Mapping[str, Any], name: str, zone: str) -> dict[str, Any]:
    """Return a node of a pool."""
    resources = {"cpu": pool["cpu"], "memory": pool["memory"]}
    if "gpus" in pool:
        resources["nvidia.com/gpu"] = pool["gpus"]
    found = node(name, zone, taints=[pool["taint"]] if "taint" in pool else [], **resources)
    found["metadata"]["labels"]["pool"] = pool["name"]
    return found


def deployment(workload: Mapping[str, Any]) -> dict[str, Any]:
    own = {"app": workload["name"]}
    spec = {"schedulerName": workload.get("scheduler", "default-scheduler"), **workload["pod"]}
    return {
        "metadata": {"name": workload["name"]},
        "spec": {
            "replicas": workload["replicas"],
            "selector": {"matchLabels": own},
            "template": {"metadata": {"labels": own | workload.get("labels", {})}, "spec": spec},
        },
    }


def driver(application: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Spark driver, whose annotations declare what its executors will need."""
    found = _spark(application, "driver", f"{application['name']}-driver")
    found["metadata"]["annotations"] = application["annotations"]
    return found


def executor(application: Mapping[str, Any], number: int) -> dict[str, Any]:
    return _spark(application, "executor", f"{application['name']}-exec-{number}")


def _spark(application: Mapping[str, Any], role: str, name: str) -> dict[str, Any]:
    labels = {"app": application["name"], "spark-app-selector": application["name"], "spark-role": role}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulerName": application["scheduler"], **application["pod"]},
    }
