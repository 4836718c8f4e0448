"""The objects of the demo's script, as documents for the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.apps.up.command import node


def of_group(group: Mapping[str, Any], name: str, zone: str) -> dict[str, Any]:
    offered = {"cpu": group["cpu"], "memory": group["memory"]}
    if "gpus" in group:
        offered["nvidia.com/gpu"] = group["gpus"]
    found = node(name, zone, taints=[group["taint"]] if "taint" in group else [], **offered)
    found["metadata"]["labels"]["pool"] = group["name"]
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
    """It says what its executors will need; until it runs there are none."""
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
