"""Resource claims: one GPU, from the slice to the pod."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from stowplan.apps.demo import pictures
from stowplan.apps.demo.objects import node, pod
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage
from stowplan.embedded.controllers.device_drivers import DEVICES, SLICES
from stowplan.embedded.controllers.resource_claims import CLAIMS

STORY = (
    "Drivers publish GPUs in resource slices: small ones on two nodes, large ones on a third. Two trainings claim one "
    "GPU with at least 40Gi each. The claims are made from a template, and allocated together with the node."
)
DRIVER = "gpu.example.com"
LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
GPUS = {"worker-0": ("l4", "24Gi"), "worker-1": ("l4", "24Gi"), "worker-2": ("a100", "80Gi")}
KIND = {"apiVersion": "resource.k8s.io/v1"}
CLASS = {
    **KIND,
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": LARGE}}]}}
TEMPLATE = {
    **KIND,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "large"},
    "spec": {"spec": {"devices": {"requests": [REQUEST]}}},
}
TRAININGS = ("bert", "clip")


def play(seed: int) -> Scene:
    stage = NodeStage(seed)
    stage.create(*(_worker(name, *gpu) for name, gpu in GPUS.items()), CLASS, TEMPLATE)
    stage.create(*(_training(name) for name in TRAININGS))
    placed = [found for name in TRAININGS for found in stage.pods(name)]
    why = [pictures.chosen(stage.decision(placed[-1]))]
    went_well = [found.node_name for found in placed] == ["worker-2", "worker-2"]
    title = "Resource claims: one GPU each, from the slice to the pod"
    return Scene(title, STORY, [_devices(stage)], why, went_well)


def _worker(name: str, model: str, memory: str) -> dict[str, Any]:
    found = node(name)
    gpus = f"{DRIVER}: {{count: 2, attributes: {{model: {model}}}, capacity: {{memory: {memory}}}}}"
    found["metadata"]["annotations"] = {**found["metadata"].get("annotations", {}), DEVICES: gpus}
    return found


def _training(name: str) -> dict[str, Any]:
    found = pod(name, "1", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "large"}])
    found["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return found


def _devices(stage: NodeStage) -> Table:
    """Return the devices of all slices, with the claims that have them and the pods that use these."""
    users: dict[tuple[str, str], tuple[str, str]] = {}
    for claim in stage.documents(CLAIMS):
        status = claim.get("status", {})
        for result in status.get("allocation", {}).get("devices", {}).get("results", ()):
            pods = [user["name"] for user in status.get("reservedFor", ())]
            users[result["pool"], result["device"]] = claim["metadata"]["name"], ", ".join(pods)
    found = pictures.table("pool", "device", "memory", "claim", "pod")
    for each in stage.documents(SLICES):
        pool = each["spec"]["pool"]["name"]
        for device in each["spec"]["devices"]:
            of_device = users.get((pool, device["name"]), ("", ""))
            found.add_row(pool, device["name"], device["capacity"]["memory"]["value"], *of_device)
    return found
