"""Resource claims: what the incoming pod asks for, and what others were allocated before."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from tests.oracle.draw.device_expressions import cel, selectors
from tests.oracle.draw.devices import CONDITIONS, DRIVERS, PCIE_ROOT, TAINTS, DeviceWorld, Known
from tests.oracle.draw.scenario import Draw, Obj, Scenario

FINALIZER = "resource.kubernetes.io/delete-protection"
LONG_AGO, TO_COME = "2026-02-03T04:05:06Z", "2099-01-01T00:00:00Z"


# -- classes


def make_classes(s: Scenario, world: DeviceWorld, *, configured: float = 0.1, failing: float = 0.01) -> None:
    """A class for each driver, and sometimes one that selects more closely."""
    d = s.d
    s.cluster["deviceClasses"] = []
    for driver in world.names:
        spec: Obj = {"selectors": [cel(f'device.driver == "{driver}"')]}
        if d.chance(configured):
            spec["config"] = [configuration(d, driver, "class") for _ in range(d.randint(1, 2))]
        s.add("deviceClasses", {"metadata": {"name": driver}, "spec": spec})
        if d.chance(0.25):
            some = [cel(f'device.driver == "{driver}"'), *selectors(d, driver, failing)]
            extra: Obj = {"selectors": some}
            if d.chance(configured):
                extra["config"] = [configuration(d, driver, "fast")]
            s.add("deviceClasses", {"metadata": {"name": f"{DRIVERS[driver]}-fast"}, "spec": extra})


def configuration(d: Draw, driver: str, text: str) -> Obj:
    return {"opaque": {"driver": driver, "parameters": {"for": text, "share": d.randint(1, 9)}}}


def class_of(s: Scenario, driver: str) -> str:
    names = [each["metadata"]["name"] for each in s.cluster["deviceClasses"]]
    fast = f"{DRIVERS[driver]}-fast"
    return fast if fast in names and s.d.chance(0.5) else driver


# -- what is asked for


class Asking:
    """How often a request is something special."""

    def __init__(
        self, *, all_mode: float = 0.05, lists: float = 0.1, admin: float = 0.0, constraints: float = 0.15,
        failing: float = 0.02, tolerations: float = 0.05, configured: float = 0.1, capacity: float = 0.0,
        most: int = 3, missing: float = 0.01,
    ) -> None:  # fmt: skip
        self.all_mode, self.lists, self.admin, self.constraints = all_mode, lists, admin, constraints
        self.failing, self.tolerations, self.configured, self.capacity = failing, tolerations, configured, capacity
        self.most, self.missing = most, missing


def claim(s: Scenario, world: DeviceWorld, name: str, ask: Asking, namespace: str) -> Obj:
    d = s.d
    requests = [request(s, world, f"r{i}", ask) for i in range(d.one(1, 1, 1, 2, 2, 3))]
    devices: Obj = {"requests": requests}
    names = [each["name"] for each in requests]
    full = names + [f"{r['name']}/{one['name']}" for r in requests for one in r.get("firstAvailable", ())]
    if d.chance(ask.constraints):
        devices["constraints"] = [constraint(d, world, full) for _ in range(d.one(1, 1, 2))]
    if d.chance(ask.configured):
        found = [configuration(d, d.choice(world.names), "claim") for _ in range(d.randint(1, 3))]
        devices["config"] = [{**each, "requests": d.some(full, 1, 2)} if d.chance(0.6) else each for each in found]
    meta = {"name": name, "namespace": namespace, "uid": f"claim-{name}"}
    return s.add("resourceClaims", {"metadata": meta, "spec": {"devices": devices}})


def request(s: Scenario, world: DeviceWorld, name: str, ask: Asking) -> Obj:
    d = s.d
    if d.chance(ask.lists):
        some = [{"name": f"s{i}", **amount(s, world, ask)} for i in range(d.randint(1, 3))]
        return {"name": name, "firstAvailable": some}
    exactly = amount(s, world, ask)
    if d.chance(ask.admin):
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def amount(s: Scenario, world: DeviceWorld, ask: Asking) -> Obj:
    d = s.d
    driver = d.choice(world.names)
    out: Obj = {"deviceClassName": "nothing.example.com" if d.chance(ask.missing) else class_of(s, driver)}
    some = selectors(d, driver, ask.failing)
    if some:
        out["selectors"] = some
    if d.chance(ask.all_mode):
        out["allocationMode"] = "All"
    else:
        out |= {"allocationMode": "ExactCount", "count": d.one(1, 1, 1, 2, 2, ask.most)}
    if d.chance(ask.tolerations):
        out["tolerations"] = [device_toleration(d) for _ in range(d.randint(1, 2))]
    if d.chance(ask.capacity):
        unit = d.one("", "G", "Gi")
        asked = {"bandwidth": f"{d.one(1, 2, 3, 5, 8, 20)}{unit}"}
        if d.chance(0.15):
            asked["queues"] = d.one("1", "32")
        out["capacity"] = {"requests": asked}
    return out


def device_toleration(d: Draw) -> Obj:
    kind = d.random()
    out: Obj = {"operator": "Exists"}
    if kind < 0.4:
        out["key"] = d.choice(TAINTS)
    elif kind < 0.85:
        out = {"key": d.choice(TAINTS), "operator": "Equal", "value": d.one("yes", "no")}
    if d.chance(0.5):
        out["effect"] = d.one("NoSchedule", "NoExecute")
    return out


def constraint(d: Draw, world: DeviceWorld, names: list[str]) -> Obj:
    attributes = [PCIE_ROOT, PCIE_ROOT, f"{world.names[0]}/missing"]
    if "gpu.example.com" in world.names:
        attributes += ["gpu.example.com/model", "gpu.example.com/ecc", "gpu.example.com/numa", "gpu.example.com/index"]
    out: Obj = {d.one("matchAttribute", "matchAttribute", "distinctAttribute"): d.choice(attributes)}
    if d.chance(0.4):
        out["requests"] = d.some(names, 1, 2)
    return out


def uses(s: Scenario, pod: Obj, names: Sequence[str]) -> None:
    """Let the pod use these claims."""
    spec = pod["spec"]
    for name in names:
        own = f"c{len(spec.setdefault('resourceClaims', []))}"
        spec["resourceClaims"].append({"name": own, "resourceClaimName": name})
        spec["containers"][0].setdefault("resources", {}).setdefault("claims", []).append({"name": own})


# -- what is taken


def result(d: Draw, known: Known, name: str) -> Obj:
    out: Obj = {"request": name, "driver": known.driver, "pool": known.pool, "device": known.device["name"]}
    if known.device.get("allowMultipleAllocations"):
        out["shareID"] = str(uuid.UUID(int=d.getrandbits(128), version=4))
        out["consumedCapacity"] = {
            key: each.get("requestPolicy", {}).get("default", each["value"])
            for key, each in known.device["capacity"].items()
        }
    for key in ("bindingConditions", "bindingFailureConditions"):
        if key in known.device:
            out[key] = known.device[key]
    return out


def allocation(d: Draw, devices: Sequence[Known], stamp: str | None = LONG_AGO) -> Obj:
    out: Obj = {"devices": {"results": [result(d, known, "r0") for known in devices]}}
    nodes = sorted({known.node for known in devices if known.node})
    if nodes:
        field = {"key": "metadata.name", "operator": "In", "values": nodes[:1]}
        out["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    if stamp:
        out["allocationTimestamp"] = stamp
    return out


def allocated(s: Scenario, name: str, devices: Sequence[Known], namespace: str = "default", **more: str | None) -> Obj:
    """A claim that has these devices; nobody uses it yet."""
    asked = {"deviceClassName": devices[0].driver, "allocationMode": "ExactCount", "count": len(devices)}
    meta: Obj = {"name": name, "namespace": namespace, "uid": f"claim-{name}"}
    spec = {"devices": {"requests": [{"name": "r0", "exactly": asked}]}}
    status = {"allocation": allocation(s.d, devices, **more)}
    return s.add("resourceClaims", {"metadata": meta, "spec": spec, "status": status})


def reserve(found: Obj, *users: tuple[str, str]) -> None:
    """Let pods, by name and uid, use a claim."""
    found["metadata"]["finalizers"] = [FINALIZER]
    rows = found["status"].setdefault("reservedFor", [])
    rows += [{"resource": "pods", "name": name, "uid": uid} for name, uid in users]


def take(s: Scenario, world: DeviceWorld, share: float) -> None:
    """Allocate some devices to claims of others. Shareable ones may be taken several times."""
    d = s.d
    for known in list(world.known):
        for _ in range(d.randint(1, 3) if known.device.get("allowMultipleAllocations") else 1):
            if not d.chance(share):
                continue
            s.serial += 1
            found = allocated(s, f"taken-{s.serial}", [known])
            if d.chance(0.9):
                reserve(found, (f"someone-{s.serial}", f"uid-someone-{s.serial}"))


def device_conditions(found: Obj, states: dict[str, str]) -> None:
    """What the driver says of a claim's devices."""
    found["status"]["devices"] = [
        {
            **{key: row[key] for key in ("driver", "pool", "device", "shareID") if key in row},
            "conditions": [
                {
                    "type": name, "status": state, "reason": "Set", "message": "m",
                    "lastTransitionTime": "2026-02-03T05:00:00Z",
                }
                for name, state in states.items()
            ],
        }
        for row in found["status"]["allocation"]["devices"]["results"]
    ]  # fmt: skip


def condition_states(d: Draw) -> dict[str, str]:
    states = {name: d.one("True", "False") for name in d.some(CONDITIONS, 0, 2)}
    return {**states, "example.com/failed": "True"} if d.chance(0.2) else states
