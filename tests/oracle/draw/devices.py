"""Devices: what drivers publish of each node, and of the network, in pools of resource slices.

A `DeviceWorld` says how often a pool or a device is something special: taints, partitions, shares, conditions of
binding, pools in several slices, of old generations, incomplete or invalid.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.draw.scenario import Draw, Obj, Scenario

DRIVERS = {"gpu.example.com": "gpu", "nic.example.org": "nic", "fpga.vendor.io": "fpga"}
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
MODELS = ["a100", "h100", "l4"]
VERSIONS = ["1.0.0", "1.2.0", "1.10.3", "2.0.0-rc.1", "2.0.0", "2.3.1+build.7", "10.0.0"]
MEMORIES = ["16Gi", "24Gi", "40Gi", "80Gi", "85899345920", "20G"]
TAINTS = ["example.com/broken", "example.com/drain", "dedicated"]
CONDITIONS = ["example.com/attached", "example.com/powered"]


@dataclass
class Known:
    """A device that claims may be allocated. `node`: "" if it is not of one node."""

    driver: str
    pool: str
    device: Obj
    node: str


@dataclass
class DeviceWorld:
    """What is drawn, by how often, and what was drawn."""

    drivers: int = 1
    most: int = 4  # devices of a node and driver
    taints: float = 0.0
    partitions: float = 0.0
    shares: float = 0.0
    conditions: float = 0.0
    odd_pools: float = 0.0
    network: float = 0.0
    known: list[Known] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the drivers


def make_devices(s: Scenario, world: DeviceWorld) -> DeviceWorld:
    d = s.d
    world.names = list(DRIVERS)[: world.drivers]
    s.cluster["resourceSlices"] = []
    for driver in world.names:
        for node in s.node_names():
            for _ in range(2 if d.chance(0.12) else 1):
                if not d.chance(0.1):
                    node_pool(s, world, driver, node)
        if d.chance(world.network):
            network_pool(s, world, driver)
    d.shuffle(s.cluster["resourceSlices"])
    return world


def node_pool(s: Scenario, world: DeviceWorld, driver: str, node: str) -> None:
    d = s.d
    taken = {known.pool for known in world.known if known.driver == driver}
    name = next(n for n in d.sample([node, f"a-{node}", f"z-{node}", f"{node}/x"], 4) if n not in taken)
    if node not in taken and d.chance(0.6):
        name = node
    devices, counters = pool_devices(d, world, driver)
    pool(s, world, driver, name, {"nodeName": node}, devices, counters)
    world.known += [Known(driver, name, device, node) for device in devices]


def network_pool(s: Scenario, world: DeviceWorld, driver: str) -> None:
    """Devices that several nodes reach."""
    d = s.d
    devices, counters = pool_devices(d, world, driver)
    name, kind = f"rack-{d.randint(0, 2)}", d.random()
    if kind < 0.3:
        where: Obj = {"allNodes": True}
    elif kind < 0.6:
        where = {"nodeSelector": {"nodeSelectorTerms": [selector_term(s)]}}
    else:
        where = {"perDeviceNodeSelection": True}
        for device in devices:
            device.update(own_nodes(s))
    pool(s, world, driver, name, where, devices, counters)
    world.known += [Known(driver, name, device, "") for device in devices]


def own_nodes(s: Scenario) -> Obj:
    d, kind = s.d, s.d.random()
    if kind < 0.4:
        return {"nodeName": d.choice(s.node_names())}
    if kind < 0.6:
        return {"allNodes": True}
    terms = 2 if d.chance(0.1) else 1
    return {"nodeSelector": {"nodeSelectorTerms": [selector_term(s) for _ in range(terms)]}}


def selector_term(s: Scenario) -> Obj:
    d = s.d
    key = d.text("kubernetes.io/arch", "rack", "pool")
    values = {"kubernetes.io/arch": ["amd64", "arm64"], "rack": ["r0", "r1", "r2"], "pool": ["general", "spot"]}[key]
    expression: Obj = {"key": key, "operator": "In", "values": d.some(values, 1, 2)}
    if d.chance(0.3):
        expression = {"key": key, "operator": d.one("Exists", "DoesNotExist")}
    if d.chance(0.15):
        fields = {"key": "metadata.name", "operator": "In", "values": [d.choice(s.node_names())]}
        return {"matchExpressions": [expression], "matchFields": [fields]}
    return {"matchExpressions": [expression]}


# -- the devices of a pool


def pool_devices(d: Draw, world: DeviceWorld, driver: str) -> tuple[list[Obj], list[Obj]]:
    """Devices, and the sets of counters that they consume."""
    if d.chance(world.partitions):
        return partitions(d, driver)
    short, first = DRIVERS[driver], d.one(0, 0, 8)
    devices = [device(d, world, driver, f"{short}-{first + i}") for i in range(d.randint(0, world.most))]
    if d.chance(0.3):
        d.shuffle(devices)
    return devices, []


def device(d: Draw, world: DeviceWorld, driver: str, name: str) -> Obj:
    out: Obj = {"name": name, "attributes": attributes(d, driver), "capacity": capacities(d, driver)}
    if d.chance(world.taints):
        out["taints"] = [device_taint(d) for _ in range(d.randint(1, 2))]
    if d.chance(world.shares):
        out["allowMultipleAllocations"] = True
        out["capacity"] = shared_capacities(d)
    if d.chance(world.conditions):
        out["bindingConditions"] = d.some(CONDITIONS, 1, 2)
        out["bindingFailureConditions"] = ["example.com/failed"]
        if d.chance(0.4):
            out["bindsToNode"] = True
    return out


def attributes(d: Draw, driver: str) -> Obj:
    out: Obj = {PCIE_ROOT: {"string": d.one("pci0000:00", "pci0000:40", "pci0000:80")}}
    if driver == "gpu.example.com":
        numa = "gpu.example.com/numa" if d.chance(0.1) else "numa"
        out |= {
            "model": {"string": d.choice(MODELS)}, "index": {"int": d.randint(0, 7)}, "ecc": {"bool": d.chance(0.5)},
            "driverVersion": {"version": d.choice(VERSIONS)}, numa: {"int": d.randint(0, 1)},
        }  # fmt: skip
        if d.chance(0.3):
            out["uuid"] = {"string": f"GPU-{d.getrandbits(32):08x}"}
        if d.chance(0.3):
            out["vendor.example.com/family"] = {"string": d.one("ampere", "hopper")}
    elif driver == "nic.example.org":
        out |= {"speed": {"int": d.one(10, 25, 100)}, "rdma": {"bool": d.chance(0.5)}}
        out |= {"vendor": {"string": d.one("intel", "mellanox")}, "firmware": {"version": d.choice(VERSIONS)}}
    else:
        out |= {"family": {"string": d.one("versal", "stratix")}, "slot": {"int": d.randint(0, 3)}}
    if d.chance(0.15):
        del out[PCIE_ROOT]
    return out


def capacities(d: Draw, driver: str) -> Obj:
    if driver == "gpu.example.com":
        return {"memory": {"value": d.choice(MEMORIES)}, "cores": {"value": d.one("32", "64", "108")}}
    if driver == "nic.example.org":
        return {"bandwidth": {"value": d.one("10G", "25G", "100G")}}
    return {"luts": {"value": d.one("500k", "900k")}}


def shared_capacities(d: Draw) -> Obj:
    unit = d.one("", "G", "Gi")
    bandwidth: Obj = {"value": f"40{unit}"}
    kind = d.random()
    if kind < 0.25:
        options = d.one(["1", "2", "8"], ["5", "10"], ["4"])
        policy: Obj = {"default": f"{options[0]}{unit}", "validValues": [f"{each}{unit}" for each in options]}
        bandwidth["requestPolicy"] = policy
    elif kind < 0.55:
        valid: Obj = {"min": f"2{unit}"}
        if d.chance(0.6):
            valid["step"] = f"2{unit}"
        if d.chance(0.5):
            valid["max"] = f"{d.one(8, 16)}{unit}"
        bandwidth["requestPolicy"] = {"default": f"{d.one(2, 4)}{unit}", "validRange": valid}
    elif kind < 0.75:
        bandwidth["requestPolicy"] = {"default": f"{d.one(1, 3, 10)}{unit}"}
    out: Obj = {"bandwidth": bandwidth}
    if d.chance(0.3):
        out["queues"] = {"value": "64", "requestPolicy": {"default": d.one("1", "16", "64")}}
    return out


def device_taint(d: Draw) -> Obj:
    out: Obj = {"key": d.choice(TAINTS), "effect": d.one("NoSchedule", "NoExecute", "NoSchedule", "None")}
    if d.chance(0.5):
        out["value"] = d.one("yes", "no")
    return out


def partitions(d: Draw, driver: str) -> tuple[list[Obj], list[Obj]]:
    """Cards of eight slices each, cut in several ways at once."""
    devices: list[Obj] = []
    counters: list[Obj] = []
    for card in range(d.randint(1, 2)):
        slices, name = d.one(8, 8, 5), f"set-{card}"
        counters.append({"name": name, "counters": {"slices": {"value": str(slices)}, "memory": {"value": "80Gi"}}})
        for size in d.some([1, 2, 4, 8], 1, 3):
            for at in range(0, 8, size):
                if not d.chance(0.6):
                    continue
                if d.chance(0.03):
                    name = "nowhere"  # makes the pool invalid
                taken = {"slices": {"value": str(size)}, "memory": {"value": f"{size * 10}Gi"}}
                each: Obj = {
                    "name": f"{DRIVERS[driver]}{card}-{size}x{at}", "attributes": attributes(d, driver),
                    "capacity": capacities(d, driver), "consumesCounters": [{"counterSet": name, "counters": taken}],
                }  # fmt: skip
                devices.append(each)
                name = f"set-{card}"
    if d.chance(0.2):
        d.shuffle(devices)
    return devices, counters


# -- the slices of a pool


def pool(
    s: Scenario, world: DeviceWorld, driver: str, name: str, where: Obj, devices: list[Obj], counters: list[Obj]
) -> None:
    d = s.d
    odd = d.chance(world.odd_pools)
    parts: list[Obj] = [{"sharedCounters": counters}] if counters else []
    cuts = sorted(d.randint(0, len(devices)) for _ in range(d.randint(0, 2) if odd else 0))
    for start, end in zip([0, *cuts], [*cuts, len(devices)], strict=True):
        parts.append({"devices": devices[start:end]} if end > start else {})
    generation, count = d.one(1, 1, 2, 7), len(parts)
    kind = d.random() if odd else 1.0
    if kind < 0.25:
        count += 1  # a slice is missing
    elif kind < 0.45:  # something of an older generation is left
        left = {"devices": [device(d, world, driver, f"old-{i}") for i in range(2)]}
        add_slice(s, driver, name, where, left, generation - 1, d.one(1, 2))
    elif kind < 0.6:  # the next generation is being published
        add_slice(s, driver, name, where, {"devices": devices[:1]} if devices else {}, generation + 1, d.one(1, 2))
    elif kind < 0.7 and devices:  # a device twice
        parts.append({"devices": [devices[0]]})
        count += 1
    for part in parts:
        add_slice(s, driver, name, where, part, generation, count)


def add_slice(s: Scenario, driver: str, name: str, where: Obj, part: Obj, generation: int, count: int) -> None:
    letters = "".join(s.d.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
    about = {"name": name, "generation": generation, "resourceSliceCount": count}
    if "sharedCounters" in part and "perDeviceNodeSelection" in where:
        where = {"perDeviceNodeSelection": True}
    spec: Obj = {"driver": driver, "pool": about, **where, **part}
    metadata = {"name": f"{name.replace('/', '-')}-{DRIVERS[driver]}-{letters}"}
    s.add("resourceSlices", {"metadata": metadata, "spec": spec})
