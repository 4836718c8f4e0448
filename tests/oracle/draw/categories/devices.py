"""Pods with resource claims: one function for each subject that the golden records have."""

from __future__ import annotations

from tests.oracle.draw.budgets import budgets
from tests.oracle.draw.claims import (
    LONG_AGO,
    TO_COME,
    Asking,
    allocated,
    claim,
    condition_states,
    device_conditions,
    make_classes,
    reserve,
    take,
    uses,
)
from tests.oracle.draw.devices import DeviceWorld, Known, make_devices
from tests.oracle.draw.labels import label_pools
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.pods import existing
from tests.oracle.draw.scenario import Obj, Scenario
from tests.oracle.draw.spreading import add_constraints
from tests.oracle.draw.taints import tolerations

ADMINS = "admins"
ROOMY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def prepare(s: Scenario, world: DeviceWorld, most_nodes: int = 6, plain: float = 0.9, **classes: float) -> DeviceWorld:
    """Nodes with devices, classes, and the incoming pod."""
    d = s.d
    for name in ("default", ADMINS):
        known = [each for each in s.cluster["namespaces"] if each["metadata"]["name"] == name]
        if not known:
            s.cluster["namespaces"].append({"metadata": {"name": name, "labels": {}}, "spec": {}})
    for each in s.cluster["namespaces"]:
        if each["metadata"]["name"] == ADMINS:
            each["metadata"]["labels"]["resource.kubernetes.io/admin-access"] = "true"
    make_nodes(s, 1, most_nodes, odd=0.0, taints=0.02)
    for node in s.nodes:
        if d.chance(plain):
            node["status"]["allocatable"] = dict(ROOMY)
    make_devices(s, world)
    make_classes(s, world, **classes)
    s.cluster["resourceClaims"] = []
    requests = {"cpu": d.one("500m", "500m", "4", "20"), "memory": "256Mi"}
    main = {"name": "main", "image": "registry.example.com/train:1", "resources": {"requests": requests}}
    meta = {"name": "incoming", "uid": "u0", "namespace": "default", "labels": {"app": "train"}}
    s.pod = {"metadata": meta, "spec": {"containers": [main]}}
    return world


def ask(s: Scenario, world: DeviceWorld, asking: Asking, most: int = 2) -> None:
    """Claims of the incoming pod, that are not allocated yet."""
    namespace = s.pod["metadata"]["namespace"]
    names = [f"mine-{i}" for i in range(s.d.randint(1, most))]
    for name in names:
        claim(s, world, name, asking, namespace)
    uses(s, s.pod, names)


def plain(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 3)))
    take(s, world, s.d.one(0.0, 0.2, 0.5))
    ask(s, world, Asking(lists=0.0, failing=0.0, most=4), 3)


def all_mode(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 2), odd_pools=0.1, taints=0.08, shares=0.05))
    take(s, world, s.d.one(0.0, 0.0, 0.1))
    ask(s, world, Asking(all_mode=0.7, tolerations=0.2, failing=0.0))


def expressions(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(most=6), failing=0.05)
    take(s, world, s.d.one(0.0, 0.2))
    ask(s, world, Asking(failing=s.d.one(0.0, 0.0, 0.5), constraints=0.05))


def constraints(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 2), most=5))
    take(s, world, s.d.one(0.0, 0.2))
    ask(s, world, Asking(constraints=0.9, lists=0.2, all_mode=0.08, failing=0.0))


def prioritized(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 2)))
    take(s, world, s.d.one(0.0, 0.3))
    ask(s, world, Asking(lists=0.8, configured=0.4, constraints=0.3, failing=0.01, most=4))


def admin_access(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(shares=s.d.one(0.0, 0.3)))
    s.pod["metadata"]["namespace"] = ADMINS
    take(s, world, s.d.one(0.2, 0.6))
    ask(s, world, Asking(admin=0.5, all_mode=0.2, lists=0.0, failing=0.0))


def device_taints(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(taints=0.6))
    take(s, world, 0.1)
    ask(s, world, Asking(tolerations=0.6, all_mode=0.1, failing=0.0))


def partitionable(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(partitions=0.8), most_nodes=4)
    take(s, world, s.d.one(0.0, 0.05, 0.15))
    ask(s, world, Asking(failing=0.0, all_mode=0.03))


def shared(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 2), shares=0.8, most=3))
    take(s, world, s.d.one(0.0, 0.3, 0.6))
    ask(s, world, Asking(capacity=0.6, all_mode=0.1, failing=0.0, constraints=0.25), 3)


def networks(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 3), network=0.8, most=2))
    take(s, world, s.d.one(0.0, 0.2))
    ask(s, world, Asking(failing=0.0), 3)


def pools(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=s.d.randint(1, 2), odd_pools=0.5, network=0.2, partitions=0.1))
    take(s, world, s.d.one(0.0, 0.2))
    ask(s, world, Asking(all_mode=0.15, failing=0.0))


def configured(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(drivers=2), configured=0.8)
    ask(s, world, Asking(configured=0.8, lists=0.4, failing=0.0), 3)


def limits(s: Scenario) -> None:
    world = prepare(s, DeviceWorld(most=36), most_nodes=2)
    ask(s, world, Asking(most=s.d.one(4, 33, 33, 40), all_mode=0.4, failing=0.0, constraints=0.0))


def backtracking(s: Scenario) -> None:
    """Several requests for few devices, so that the first choice is often wrong."""
    world = prepare(s, DeviceWorld(most=5), most_nodes=4)
    take(s, world, 0.15)
    ask(s, world, Asking(constraints=0.6, failing=0.0, lists=0.3, all_mode=0.0, most=2), 3)


def claim_state(s: Scenario) -> None:
    """Claims that were allocated before, are gone, are going, or are not made yet."""
    d = s.d
    world = prepare(s, DeviceWorld(drivers=1))
    take(s, world, 0.1)
    if d.chance(0.6):
        ask(s, world, Asking(failing=0.0, missing=0.05), 1)
    names: list[str] = []
    for i in range(d.randint(1, 2)):
        name, kind = f"old-{i}", d.random()
        if kind < 0.1:
            names.append(f"nowhere-{i}")
        elif kind < 0.25:
            templated(s, world, f"t{i}")
        elif world.known:
            found = old_claim(s, name, world)
            names.append(found["metadata"]["name"])
    uses(s, s.pod, d.sample(names, len(names)))
    if "resourceClaims" not in s.pod["spec"]:
        ask(s, world, Asking(failing=0.0), 1)


def old_claim(s: Scenario, name: str, world: DeviceWorld) -> Obj:
    d = s.d
    same: list[Known] = [known for known in world.known if known.node == world.known[0].node]
    found = allocated(s, name, d.some(same, 1, 2), stamp=LONG_AGO if d.chance(0.9) else None)
    kind = d.random()
    if kind < 0.35:
        reserve(found, ("incoming", "u0"))
    elif kind < 0.6:
        reserve(found, ("peer", "uid-peer"), *([("incoming", "u0")] if d.chance(0.4) else []))
    elif kind < 0.65:
        reserve(found, *((f"peer-{i}", f"uid-peer-{i}") for i in range(256)))
    if d.chance(0.06):
        found["metadata"]["deletionTimestamp"] = "2026-02-10T00:00:00Z"
        found["metadata"].setdefault("finalizers", ["example.com/busy"])
    return found


def templated(s: Scenario, world: DeviceWorld, own: str) -> None:
    """A claim that is made from a template."""
    d, spec = s.d, s.pod["spec"]
    spec.setdefault("resourceClaims", []).append({"name": own, "resourceClaimTemplateName": "gpu"})
    kind = d.random()
    if kind < 0.2:
        return  # it is not made yet
    status = s.pod.setdefault("status", {}).setdefault("resourceClaimStatuses", [])
    if kind < 0.3:
        status.append({"name": own})
        return
    name = f"incoming-{own}-x1"
    status.append({"name": own, "resourceClaimName": name})
    if kind < 0.4:
        return  # it is gone again
    found = claim(s, world, name, Asking(failing=0.0), "default")
    uid = "u9" if d.chance(0.15) else "u0"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "incoming", "uid": uid, "controller": True}
    found["metadata"]["ownerReferences"] = [owner]


def binding(s: Scenario) -> None:
    """Devices that must be prepared, and claims whose devices are, fail, or come late."""
    d = s.d
    world = prepare(s, DeviceWorld(conditions=0.6, network=0.2))
    take(s, world, 0.1)
    special = [known for known in world.known if "bindingConditions" in known.device and known.node]
    if special and d.chance(0.5):
        found = allocated(s, "mine-old", [d.choice(special)], stamp=d.one(LONG_AGO, TO_COME, TO_COME))
        if d.chance(0.5):
            device_conditions(found, condition_states(d))
        if d.chance(0.7):
            reserve(found, d.one(("incoming", "u0"), ("incoming", "u0"), ("peer", "uid-peer")))
        uses(s, s.pod, ["mine-old"])
    if "resourceClaims" not in s.pod["spec"] or d.chance(0.4):
        ask(s, world, Asking(failing=0.0, all_mode=0.05), 2)
    if d.chance(0.15):
        s.config = configuration({"bindingTimeout": d.one("1s", "86400s", "600s")}, "DynamicResources")


def configuration(args: Obj, plugin: str) -> Obj:
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": plugin, "args": args}]}
    version = "kubescheduler.config.k8s.io/v1"
    return {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def extended(s: Scenario) -> None:
    """Extended resources that classes stand for, or device plugins, or nobody."""
    d = s.d
    world = prepare(s, DeviceWorld(drivers=2, most=5), configured=0.2)
    take(s, world, s.d.one(0.0, 0.2))
    resources = ["example.com/gpu", "example.org/nic"]
    for index, each in enumerate(s.cluster["deviceClasses"]):
        if "failing" not in each and d.chance(0.8):
            each["spec"]["extendedResourceName"] = resources[each["metadata"]["name"].startswith("nic")]
        if d.chance(0.3):
            each["metadata"]["creationTimestamp"] = f"2026-01-0{1 + index}T00:00:00Z"
    resources += [f"deviceclass.resource.kubernetes.io/{name}" for name in world.names] + ["unknown.example.com/thing"]
    for node in s.nodes:
        for name in resources[:2]:
            if d.chance(0.25):
                node["status"]["allocatable"][name] = d.one("0", "1", "4")
    spec = s.pod["spec"]
    if d.chance(0.3):
        spec["containers"].append({"name": "side", "image": "registry.example.com/side:1", "resources": {}})
    spec["initContainers"] = [
        {"name": f"init-{i}", "image": "registry.example.com/init:1", "resources": {"requests": {"cpu": "100m"}}}
        for i in range(d.one(0, 0, 1, 2))
    ]
    for each in spec["initContainers"]:
        if d.chance(0.3):
            each["restartPolicy"] = "Always"
    for each in (*spec["containers"], *spec["initContainers"]):
        asked = {name: str(d.randint(1, 3)) for name in resources if d.chance(0.05 if "thing" in name else 0.35)}
        if asked:
            each["resources"].setdefault("requests", {}).update(asked)
            each["resources"]["limits"] = asked
    if d.chance(0.25):
        ask(s, world, Asking(failing=0.0), 1)
    if d.chance(0.4):
        strategy: Obj = {"type": d.one("LeastAllocated", "MostAllocated")}
        strategy["resources"] = [{"name": "cpu", "weight": 1}, {"name": d.choice(resources), "weight": d.randint(1, 3)}]
        s.config = configuration({"scoringStrategy": strategy}, "NodeResourcesFit")


def mixed(s: Scenario) -> None:
    """Claims with everything else."""
    d = s.d
    world = prepare(
        s,
        DeviceWorld(2, taints=0.1, partitions=0.1, shares=0.1, conditions=0.05, odd_pools=0.1, network=0.1),
        plain=0.3,
    )
    take(s, world, 0.2)
    ask(s, world, Asking(capacity=0.1, tolerations=0.2), 2)
    spec = s.pod["spec"]
    for node in s.node_names():
        for _ in range(d.randint(0, 2)):
            existing(s, node)
    if d.chance(0.4):
        spec["affinity"] = {"nodeAffinity": node_affinity(d, label_pools(s), 0.5, 0.5)}
    if d.chance(0.3):
        spec["tolerations"] = tolerations(d, 1, 2)
    if d.chance(0.3):
        add_constraints(d, spec, s.pod["metadata"]["labels"])


def preemption(s: Scenario) -> None:
    """Nodes full of less important pods, some of which hold devices."""
    d = s.d
    world = prepare(s, DeviceWorld(most=2), most_nodes=5)
    s.pod["spec"]["priority"] = d.one(100, 1000, 2000)
    s.pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3500m"
    for node in s.nodes:
        node["status"]["allocatable"]["cpu"] = "4"
        for _ in range(d.randint(1, 3)):
            pod = existing(s, node["metadata"]["name"])
            pod["spec"]["containers"] = [
                {"name": "c0", "image": "registry.example.com/a:1", "resources": {"requests": {"cpu": d.one("1", "2")}}}
            ]
            pod["spec"]["priority"] = d.one(0, 10, 500)
            here = [known for known in world.known if known.node == node["metadata"]["name"]]
            if here and d.chance(0.4):
                known = d.choice(here)
                world.known.remove(known)
                name = f"held-{pod['metadata']['uid']}"
                found = allocated(s, name, [known], namespace=pod["metadata"]["namespace"])
                reserve(found, (pod["metadata"]["name"], pod["metadata"]["uid"]))
    ask(s, world, Asking(failing=0.0, most=2), 1)
    if world.known and d.chance(0.3):
        uses(s, s.pod, [old_claim(s, "old-0", world)["metadata"]["name"]])
    if d.chance(0.3):
        budgets(s)


def in_flight(s: Scenario) -> None:
    """Pods that the same scheduler placed a moment ago."""
    d = s.d
    shares, partitions = d.one(0.0, 0.5), d.one(0.0, 0.0, 0.6)
    world = prepare(s, DeviceWorld(d.randint(1, 2), most=8, shares=shares, partitions=partitions), plain=1.0)
    take(s, world, 0.05)
    asking = Asking(failing=0.0, capacity=0.1, constraints=0.05, all_mode=0.0, lists=0.05, missing=0.0, most=1)
    ask(s, world, asking, 1)
    if d.chance(0.3):
        claim(s, world, "common", asking, "default")
        if d.chance(0.7):
            uses(s, s.pod, ["common"])
    shareable = [
        each["metadata"]["name"] for each in s.cluster["resourceClaims"] if each["metadata"]["name"] == "common"
    ]
    for i in range(d.randint(1, 2)):
        requests = {"cpu": d.one("500m", "4"), "memory": "256Mi"}
        main = {"name": "main", "image": "registry.example.com/train:1", "resources": {"requests": requests}}
        meta = {"name": f"early-{i}", "uid": f"e{i}", "namespace": "default", "labels": {"app": "train"}}
        pod: Obj = {"metadata": meta, "spec": {"containers": [main]}}
        if shareable and d.chance(0.6):
            uses(s, pod, shareable)
            shareable = [] if d.chance(0.5) else shareable
        else:
            claim(s, world, f"early-{i}", asking, "default")
            uses(s, pod, [f"early-{i}"])
        s.earlier.append({"pod": pod, "stage": d.one("reserved", "bound")})


def hints(s: Scenario) -> None:
    """Events on claims and pods."""
    d = s.d
    world = prepare(s, DeviceWorld(), most_nodes=2)
    names = ["mine", "other"]
    for name in names:
        claim(s, world, name, Asking(failing=0.0, missing=0.0), "default")
    uses(s, s.pod, ["mine"])
    if d.chance(0.2):
        uses(s, s.pod, ["nowhere"])
    if d.chance(0.3):
        s.pod["spec"].setdefault("resourceClaims", []).append({"name": "t0", "resourceClaimTemplateName": "gpu"})
    for _ in range(d.randint(1, 5)):
        if d.chance(0.25):
            changed = {**s.pod, "metadata": {**s.pod["metadata"], "uid": d.one("u0", "u0", "u9")}}
            if d.chance(0.6):
                entry = {"name": "t0", **({"resourceClaimName": d.choice(names)} if d.chance(0.7) else {})}
                changed["status"] = {"resourceClaimStatuses": [entry]}
            s.events.append({"kind": "Pod", "new": changed})
            continue
        before = d.choice(s.cluster["resourceClaims"])
        event: Obj = {"kind": "ResourceClaim", "new": variant(s, before, world)}
        if d.chance(0.8):
            event["old"] = variant(s, before, world)
        s.events.append(event)


def variant(s: Scenario, found: Obj, world: DeviceWorld) -> Obj:
    """The claim in one of several states."""
    d, kind = s.d, s.d.random()
    out: Obj = {"metadata": dict(found["metadata"]), "spec": found["spec"]}
    if kind < 0.45 and world.known:
        device = {**result_of(world.known[0]), "request": found["spec"]["devices"]["requests"][0]["name"]}
        out["status"] = {"allocation": {"devices": {"results": [device]}, "allocationTimestamp": LONG_AGO}}
        if d.chance(0.5):
            out["status"]["reservedFor"] = [{"resource": "pods", "name": "peer", "uid": "uid-peer"}]
    elif kind < 0.55:
        out["metadata"]["labels"] = {"a": "b"}
    elif kind < 0.62:
        out["metadata"] |= {"deletionTimestamp": "2026-02-10T00:00:00Z", "finalizers": ["example.com/busy"]}
    return out


def result_of(known: Known) -> Obj:
    return {"driver": known.driver, "pool": known.pool, "device": known.device["name"]}


DEVICES = {
    "exact-count": plain, "all-mode": all_mode, "cel-attributes": expressions, "constraints": constraints,
    "prioritized-list": prioritized, "admin-access": admin_access, "device-taints": device_taints,
    "partitionable": partitionable, "consumable-capacity": shared, "node-selection": networks, "pools": pools,
    "config": configured, "limits": limits, "backtracking": backtracking, "claim-state": claim_state,
    "binding-conditions": binding, "extended-resources": extended, "mixed-with-claims": mixed,
    "preemption-with-claims": preemption, "in-flight": in_flight, "queueing-hints": hints,
}  # fmt: skip
