"""Containers: what they request, what an in-place resize left in their status, and the ports they open.

Besides plain containers a pod may have init containers, sidecars, overhead and resources of its own.
"""

from __future__ import annotations

from tests.oracle.draw.images import ORDINARY_IMAGES
from tests.oracle.draw.quantities import EXTENDED, cpu, memory, storage
from tests.oracle.draw.scenario import Draw, Obj


def container(d: Draw, name: str, scale: str = "") -> Obj:
    out: Obj = {"name": name, "image": d.choice(ORDINARY_IMAGES)}
    res = requests(d, scale)
    if res:
        out["resources"] = res
    return out


def requests(d: Draw, scale: str = "") -> Obj:
    kind = d.random()
    if kind < 0.15:
        return {}
    req: Obj = {}
    if d.chance(0.85):
        req["cpu"] = cpu(d)
    if d.chance(0.85):
        req["memory"] = memory(d)
    if d.chance(0.12):
        req["ephemeral-storage"] = storage(d)
    out: Obj = {}
    if d.chance(0.85) and req:
        out["requests"] = req
    elif req:
        out["limits"] = req  # the API fills in the requests
    if scale == "rich" or d.chance(0.06):
        if d.chance(0.2):
            out.setdefault("limits", {})[d.choice(EXTENDED)] = d.one("1", "2", "0", "4")
        if d.chance(0.07):
            out.setdefault("limits", {})["hugepages-2Mi"] = d.one("64Mi", "2Mi", "256Mi")
            out.setdefault("requests", {}).setdefault("cpu", "100m")
    return out


def enrich_resources(d: Draw, spec: Obj, p: float) -> None:
    """Init containers, sidecars, overhead and pod-level resources."""
    if d.chance(p):
        spec["initContainers"] = []
        for i in range(d.randint(1, 3)):
            c = container(d, f"i{i}", "rich" if d.chance(0.3) else "")
            if d.chance(0.5):
                c["restartPolicy"] = "Always"
            spec["initContainers"].append(c)
    if d.chance(p):
        spec["containers"].append(container(d, "c1", "rich" if d.chance(0.3) else ""))
    if d.chance(p / 3):
        spec["runtimeClassName"] = "kata"
        spec["overhead"] = {k: v for k, v in (("cpu", cpu(d)), ("memory", memory(d))) if d.chance(0.8)}
    if d.chance(p / 2):
        level: Obj = {}
        if d.chance(0.8):
            level["cpu"] = d.one("2", "3", "4500m")
        if d.chance(0.7):
            level["memory"] = d.one("4Gi", "6Gi", "5e9")
        if level:
            spec["resources"] = {d.one("requests", "limits"): level}


def resize(d: Draw, pod: Obj) -> None:
    """The traces an in-place resize leaves in a pod's status."""
    status, spec = pod["status"], pod["spec"]
    status["containerStatuses"] = [resized(d, c) for c in spec["containers"]]
    if spec.get("initContainers") and d.chance(0.7):
        status["initContainerStatuses"] = [resized(d, c) for c in spec["initContainers"]]
    kind = d.random()
    if kind < 0.35:
        reason = d.one("Infeasible", "Deferred")
        status["conditions"] = [
            {"type": "PodResizePending", "status": d.one("True", "True", "False"), "reason": reason}
        ]
    elif kind < 0.6:
        status["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}]
    if spec.get("resources") and d.chance(0.6):
        status["resources"] = {"requests": {"cpu": cpu(d), "memory": memory(d)}}
        if d.chance(0.5):
            status["allocatedResources"] = {"cpu": cpu(d), "memory": memory(d)}


def resized(d: Draw, c: Obj) -> Obj:
    """A container's status during a resize."""
    row: Obj = {"name": c["name"], "image": c["image"], "imageID": "", "ready": True, "restartCount": 0}
    if d.chance(0.8):
        row["resources"] = {"requests": {"cpu": cpu(d), "memory": memory(d)}}
    if d.chance(0.6):
        row["allocatedResources"] = {"cpu": cpu(d), "memory": memory(d)}
    return row


def add_ports(d: Draw, spec: Obj, low: int, high: int) -> None:
    """Host ports, none of them twice in the pod."""
    if d.chance(0.15):
        spec["hostNetwork"] = True
    taken: set[tuple[int, str, str]] = set()
    for c in spec["containers"] + [x for x in spec.get("initContainers", []) if d.chance(0.7)]:
        ports: list[Obj] = []
        for _ in range(d.randint(low, high)):
            p = port(d, host_network=bool(spec.get("hostNetwork")))
            key = (p.get("hostPort", 0), p.get("protocol", "TCP"), p.get("hostIP", ""))
            if key not in taken:
                ports.append(p)
            taken.add(key)
        if ports:
            c["ports"] = ports


def port(d: Draw, host_network: bool) -> Obj:
    p: Obj = {"containerPort": d.one(80, 443, 8080, 53)}
    if d.chance(0.85):
        p["hostPort"] = p["containerPort"]
        if not host_network and d.chance(0.2):
            p["hostPort"] = d.one(80, 8080)
    if d.chance(0.5):
        p["protocol"] = d.one("TCP", "UDP", "SCTP")
    if d.chance(0.5):
        p["hostIP"] = d.one("0.0.0.0", "127.0.0.1", "10.0.0.5", "::", "fd00::1")
    if host_network:
        p["hostPort"] = p["containerPort"]
    return p
