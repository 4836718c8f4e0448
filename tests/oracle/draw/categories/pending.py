"""Pending pods: one to three causes at once, each on every node, so that hardly any pod gets a node."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.draw.categories.mixture import GATES, every_wish
from tests.oracle.draw.configurations import configure
from tests.oracle.draw.labels import HOST, ZONE
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.plugin_args import affinity_args, fit_args, spread_args
from tests.oracle.draw.pods import existing, fill, incoming, nominate
from tests.oracle.draw.scenario import Obj, Scenario
from tests.oracle.draw.volumes import make_volume

PORT = 8443
MISSPELT_HOST, MISSPELT_ZONE = "kubernetes.io/hostnam", "topology.kubernetes.io/zonee"


def pending(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 7, odd=0.03, taints=0.1)
    incoming(s)
    s.alike = d.one(0.1, 0.5)
    fill(s, 0, 3, priority=d.chance(0.5))
    if d.chance(0.25):
        every_wish(s)
    for cause in d.sample(CAUSES, d.one(1, 1, 2, 2, 3)):
        cause(s)
    if d.chance(0.15):
        nominate(s, 1, 3)
    if d.chance(0.3):
        s.pod["spec"]["priority"] = d.one(0, 5, 100, 1500)
    if d.chance(0.15):
        configure(s, d.some([fit_args, affinity_args, spread_args], 0, 2), plugins=0.5, profiles=0.3)


def large_request(s: Scenario) -> None:
    d = s.d
    resources = s.pod["spec"]["containers"][0].setdefault("resources", {})
    kind = d.one("cpu", "cpu", "memory", "nvidia.com/gpu", "both")
    requests: Obj = {}
    if kind in ("cpu", "both"):
        requests["cpu"] = d.one("64", "17", "9500m", "3900m")
    if kind in ("memory", "both"):
        requests["memory"] = d.one("200Gi", "48Gi", "33000M", "15Gi")
    if kind == "nvidia.com/gpu":
        requests[kind] = str(d.one(1, 9, 16))
        resources["limits"] = {**resources.get("limits", {}), **requests}
    resources["requests"] = {**resources.get("requests", {}), **requests}
    for name in requests:
        if name in resources.get("limits", {}):
            resources["limits"][name] = requests[name]
    if d.chance(0.3):
        second = {"name": "second", "image": "b", "resources": {"requests": {"cpu": "300m", "memory": "100Mi"}}}
        s.pod["spec"]["containers"].append(second)
    if d.chance(0.2):
        first = {"name": "first", "image": "b", "resources": {"requests": dict(requests)}}
        if d.chance(0.4):
            first["restartPolicy"] = "Always"
        if "nvidia.com/gpu" not in requests:
            s.pod["spec"]["initContainers"] = [first]


def tainted(s: Scenario) -> None:
    d = s.d
    for node in s.nodes:
        taint = {"key": "dedicated", "value": d.one("gpu", "batch"), "effect": d.one("NoSchedule", "NoExecute")}
        node["spec"].setdefault("taints", []).append(taint)


def cordoned(s: Scenario) -> None:
    for node in s.nodes:
        node["spec"]["unschedulable"] = True
        if s.d.chance(0.6):
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            node["spec"].setdefault("taints", []).append(taint)


def misspelt_selector(s: Scenario) -> None:
    key, value = s.d.one(("pool", "generl"), ("rack", "r9"), ("ssd", "ture"), ("no-such-label", "x"))
    s.pod["spec"].setdefault("nodeSelector", {})[key] = value


def unmet_affinity(s: Scenario) -> None:
    d = s.d
    expressions = [{"key": "pool", "operator": "In", "values": ["gpu", "sopt"]}]
    if d.chance(0.4):
        expressions.append({"key": "rack", "operator": d.one("Exists", "DoesNotExist")})
    terms: list[Obj] = [{"matchExpressions": expressions}]
    if d.chance(0.3):
        terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["no-such-node"]}]})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    s.pod["spec"].setdefault("affinity", {})["nodeAffinity"] = required


def kept_apart(s: Scenario) -> None:
    """Pods on every node that the incoming pod keeps away from, or that keep it away."""
    d, own = s.d, s.pod["metadata"]
    theirs = d.chance(0.4)
    key = d.one(HOST, HOST, ZONE)
    for node in s.node_names():
        other = existing(s, node)
        other["metadata"]["namespace"] = own["namespace"]
        other["metadata"]["labels"] = {"app": "cache"}
        if theirs:
            other["spec"]["affinity"] = {"podAntiAffinity": _required(key, {"app": "mine"})}
    if theirs:
        own.setdefault("labels", {})["app"] = "mine"
    else:
        s.pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = _required(key, {"app": "cache"})


def lonely(s: Scenario) -> None:
    """A pod that wants to be near pods that there are not, often for a typing error."""
    d = s.d
    required = _required(d.one(HOST, ZONE, MISSPELT_HOST), {"app": d.one("no-such-app", "cahe", "bacth", "cache")})
    if d.chance(0.4):
        (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]
        values = [term["labelSelector"]["matchLabels"]["app"], *d.some(("wbe", "no-such-app"), 0, 1)]
        term["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    s.pod["spec"].setdefault("affinity", {})["podAffinity"] = required


def _required(key: str, labels: dict[str, str]) -> Obj:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def badly_spread(s: Scenario) -> None:
    d, own = s.d, s.pod["metadata"]
    own.setdefault("labels", {})["app"] = "spread"
    names = s.node_names()
    for node in names[: max(1, len(names) - 1)]:
        for _ in range(d.randint(1, 3)):
            other = existing(s, node)
            other["metadata"]["namespace"], other["metadata"]["labels"] = own["namespace"], {"app": "spread"}
    constraint = {
        "maxSkew": d.one(1, 1, 2),
        "topologyKey": d.one(HOST, ZONE, "no-such-key", MISSPELT_ZONE),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    if d.chance(0.4):
        constraint["minDomains"] = d.one(2, 9)
    s.pod["spec"].setdefault("topologySpreadConstraints", []).append(constraint)
    keys = [each["topologyKey"] for each in s.pod["spec"]["topologySpreadConstraints"]]
    if len(set(keys)) < len(keys):
        s.pod["spec"]["topologySpreadConstraints"] = [constraint]


def taken_port(s: Scenario) -> None:
    for node in s.node_names():
        _listens(existing(s, node))
    _listens(s.pod)


def _listens(pod: Obj) -> None:
    port = {"containerPort": PORT, "hostPort": PORT, "protocol": "TCP"}
    pod["spec"]["containers"][0].setdefault("ports", []).append(port)


def gated(s: Scenario) -> None:
    s.pod["spec"]["schedulingGates"] = [{"name": name} for name in s.d.some(GATES, 1, 3)]


def missing_claim(s: Scenario) -> None:
    d = s.d
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "dta"}}
    s.pod["spec"].setdefault("volumes", []).append(volume)
    if d.chance(0.7):
        mode = d.one("WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate")
        storage_class = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com", "volumeBindingMode": mode}
        s.add("storageClasses", storage_class)
    if d.chance(0.5):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        metadata = {"name": "data", "namespace": s.pod["metadata"]["namespace"]}
        s.add("persistentVolumeClaims", {"metadata": metadata, "spec": spec})


def missing_class(s: Scenario) -> None:
    _claims(s, "data", s.d.one("no-such-class", "gone"))


def unbound_claim(s: Scenario) -> None:
    """A claim whose class binds by hand, and no volume for it, or one that does not do."""
    d = s.d
    mode = d.one("WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate")
    provisioner = "kubernetes.io/no-provisioner"
    s.add("storageClasses", {"metadata": {"name": "local"}, "provisioner": provisioner, "volumeBindingMode": mode})
    claim = _claims(s, "local-data", "local")
    if d.chance(0.3):
        claim["spec"]["selector"] = {"matchLabels": {"media": "ssd"}}
    if d.chance(0.4):
        make_volume(s, "other", "local", None, ["nowhere"])["spec"]["capacity"] = {"storage": "1Mi"}


def _claims(s: Scenario, name: str, storage_class: str) -> Obj:
    """Give the pod an unbound claim of a class."""
    volume = {"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}}
    s.pod["spec"].setdefault("volumes", []).append(volume)
    namespace = s.pod["metadata"]["namespace"]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": s.d.one("1Gi", "5Gi")}},
    }
    metadata = {"name": name, "namespace": namespace, "uid": f"pvc-{namespace}-{name}"}
    return s.add("persistentVolumeClaims", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def taken_disk(s: Scenario) -> None:
    disk = {"name": "disk", "gcePersistentDisk": {"pdName": "shared"}}
    for node in s.node_names():
        existing(s, node)["spec"]["volumes"] = [disk]
    s.pod["spec"].setdefault("volumes", []).append(disk)


def full(s: Scenario) -> None:
    """Nodes with as many pods as they may have."""
    for node in s.nodes:
        count = sum(pod["spec"].get("nodeName") == node["metadata"]["name"] for pod in s.cluster["pods"])
        node["status"]["allocatable"]["pods"] = str(max(count, 1))
        if not count:
            existing(s, node["metadata"]["name"])


CAUSES: list[Callable[[Scenario], None]] = [
    large_request, large_request, tainted, cordoned, misspelt_selector, unmet_affinity, kept_apart, lonely,
    badly_spread, taken_port, gated, missing_claim, taken_disk, full,
]  # fmt: skip


def pending_storage(s: Scenario) -> None:
    """Pods whose claim, class or volume is missing, and sometimes something else."""
    d = s.d
    make_nodes(s, 1, 5, odd=0.0, taints=0.05)
    incoming(s)
    fill(s, 0, 2)
    d.one(missing_claim, missing_class, unbound_claim)(s)
    if d.chance(0.2):
        d.one(*CAUSES)(s)


def pending_full(s: Scenario) -> None:
    """Nodes that are full of pods, by number and by cpu, and a pod that needs the room of several.

    No smaller request and no deleted pod helps alone; evictions do, and more nodes, if the pod names no node.
    """
    d = s.d
    make_nodes(s, 1, 5, odd=0.0, taints=0.05)
    spec = incoming(s)["spec"]
    asked = {"cpu": d.one("1900m", "1500m"), "memory": "1Gi"}
    spec["containers"][0]["resources"] = {"requests": asked}
    spec["priority"] = d.one(-20, 0, 0, 100)
    if d.chance(0.2):
        spec["preemptionPolicy"] = "Never"
    if d.chance(0.4):
        spec["nodeSelector"] = {HOST: d.choice(s.node_names())}
    for node in s.nodes:
        node["status"]["allocatable"] |= {"cpu": "2", "memory": "16Gi", "pods": d.one("4", "4", "110")}
        for _ in range(4):
            other = existing(s, node["metadata"]["name"])
            other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": "64Mi"}}
            other["spec"]["priority"] = d.one(-10, 0, 10, 100)
    if d.chance(0.2):
        d.one(tainted, misspelt_selector, kept_apart, taken_port)(s)
