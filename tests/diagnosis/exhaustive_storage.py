"""Single changes of claims, classes and volumes, for the exhaustive search.

A claim that exists has its own data: another one takes its place only if nobody uses that. A claim that is missing may
be a typing error, so that any other one of the namespace may be meant. A claim is created with a class that exists; one
of a class that binds at once stays unbound, which is no help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Scenario = dict[str, Any]
Change = Callable[[Scenario], None]
SIZE = "1Gi"


def storage_changes(scenario: Scenario) -> Iterator[tuple[str, Change]]:
    """Yield changes of the pod's claims, and of what they need."""
    known = claims(scenario)
    for at, volume in enumerate(scenario["pod"]["spec"].get("volumes") or ()):
        name = claim_name(scenario["pod"], volume)
        if name is None:
            continue
        claim = known.get(name)
        if "persistentVolumeClaim" in volume:
            for other in usable(scenario, name, anybodys=claim is None):
                yield f"claim {other} instead of {name}", using(at, other)
        if claim is None:
            for each in scenario["cluster"].get("storageClasses") or ():
                owned = "ephemeral" in volume
                yield f"create claim {name}", creating("persistentVolumeClaims", new_claim(scenario, name, each, owned))
        else:
            yield from of_existing(scenario, claim)


def of_existing(scenario: Scenario, claim: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    """Yield the class that a claim names and that is missing, and a volume for it."""
    classes = {each["metadata"]["name"] for each in scenario["cluster"].get("storageClasses") or ()}
    wanted = claim["spec"].get("storageClassName")
    if wanted and wanted not in classes:
        document = {"metadata": {"name": wanted}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
        yield f"create class {wanted}", creating("storageClasses", document)
    if not claim["spec"].get("volumeName"):
        yield f"create a volume for {claim['metadata']['name']}", creating("persistentVolumes", new_volume(claim))


def claims(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """The claims of the pod's namespace, by name."""
    namespace = scenario["pod"]["metadata"]["namespace"]
    found = scenario["cluster"].get("persistentVolumeClaims") or ()
    return {each["metadata"]["name"]: each for each in found if each["metadata"]["namespace"] == namespace}


def claim_name(pod: dict[str, Any], volume: dict[str, Any]) -> str | None:
    if "ephemeral" in volume:
        return f"{pod['metadata']['name']}-{volume['name']}"
    found: str | None = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    return found


def usable(scenario: Scenario, name: str, *, anybodys: bool) -> Iterator[str]:
    """Yield other claims of the namespace, those of other pods only if `anybodys`."""
    namespace = scenario["pod"]["metadata"]["namespace"]
    taken = {
        claim_name(pod, volume)
        for pod in scenario["cluster"].get("pods") or ()
        for volume in pod["spec"].get("volumes") or ()
        if pod["metadata"]["namespace"] == namespace
    }
    for other, claim in claims(scenario).items():
        if other != name and not claim["metadata"].get("deletionTimestamp") and (anybodys or other not in taken):
            yield other


def new_claim(scenario: Scenario, name: str, storage_class: dict[str, Any], owned: bool) -> dict[str, Any]:
    pod = scenario["pod"]["metadata"]
    metadata: dict[str, Any] = {"name": name, "namespace": pod["namespace"], "uid": f"new-{name}"}
    if owned:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"], "controller": True}
        metadata["ownerReferences"] = [owner]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class["metadata"]["name"],
        "resources": {"requests": {"storage": SIZE}},
    }
    return {"metadata": metadata, "spec": spec}


def new_volume(claim: dict[str, Any]) -> dict[str, Any]:
    """A volume that any node reaches and that meets every wish of the claim."""
    wishes, labels = claim["spec"].get("selector") or {}, dict[str, str]()
    for each in wishes.get("matchExpressions") or ():
        labels[each["key"]] = (each.get("values") or ["x"])[0]
    labels |= wishes.get("matchLabels") or {}
    spec = {
        "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        "accessModes": claim["spec"]["accessModes"],
        "storageClassName": claim["spec"].get("storageClassName") or "",
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        "hostPath": {"path": "/mnt/x"},
    }
    metadata = {"name": f"new-for-{claim['metadata']['name']}", "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Available"}}


def using(at: int, name: str) -> Change:
    def change(scenario: Scenario) -> None:
        scenario["pod"]["spec"]["volumes"][at]["persistentVolumeClaim"]["claimName"] = name

    return change


def creating(kind: str, document: dict[str, Any]) -> Change:
    def change(scenario: Scenario) -> None:
        scenario["cluster"].setdefault(kind, []).append(document)

    return change
