"""Nodes, namespaces, services, ConfigMaps, Secrets, events, leases, PriorityClasses, devices."""

from __future__ import annotations

from stowplan.embedded import timestamps
from stowplan.embedded.documents import Document
from stowplan.embedded.tables.columns import NAME, Column, Row, TablePrinter, columns, selector_text

_ROLE = "node-role.kubernetes.io/"


def age(document: Document, now: float) -> str:
    return timestamps.age(document["metadata"].get("creationTimestamp"), now)


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _node(node: Document, now: float) -> Row:
    info = node.get("status", {}).get("nodeInfo", {})
    row = [_name(node), _node_status(node), _roles(node), age(node, now), info.get("kubeletVersion", "")]
    addresses = {each.get("type"): each.get("address") for each in node.get("status", {}).get("addresses", ())}
    row += [addresses.get("InternalIP") or "<none>", addresses.get("ExternalIP") or "<none>"]
    return row + [info.get(part) or "<unknown>" for part in ("osImage", "kernelVersion", "containerRuntimeVersion")]


def _node_status(node: Document) -> str:
    ready = [each for each in node.get("status", {}).get("conditions", ()) if each["type"] == "Ready"]
    words = [("Ready" if each.get("status") == "True" else "NotReady") for each in ready] or ["Unknown"]
    return ",".join([*words, "SchedulingDisabled"] if node["spec"].get("unschedulable") else words)


def _roles(node: Document) -> str:
    labels = node["metadata"].get("labels", {})
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} - {""}
    found |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    return ",".join(sorted(found)) or "<none>"


def _namespace(document: Document, now: float) -> Row:
    return [_name(document), document.get("status", {}).get("phase", ""), age(document, now)]


def _service(document: Document, now: float) -> Row:
    spec = document["spec"]
    external = spec.get("externalName") if spec.get("type") == "ExternalName" else ",".join(spec.get("externalIPs", ()))
    waiting = "<pending>" if spec.get("type") == "LoadBalancer" else "<none>"
    row = [_name(document), spec.get("type", ""), spec.get("clusterIP") or "<none>", external or waiting]
    return [*row, _ports(spec.get("ports", ())), age(document, now), selector_text(spec.get("selector"))]


def _ports(ports: list[Document]) -> str:
    texts = []
    for port in ports:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or "<none>"


def _config_map(document: Document, now: float) -> Row:
    return [_name(document), len(document.get("data", ())) + len(document.get("binaryData", ())), age(document, now)]


def _secret(document: Document, now: float) -> Row:
    return [_name(document), document.get("type", ""), len(document.get("data", ())), age(document, now)]


def _event(event: Document, now: float) -> Row:
    about = event.get("involvedObject", {})
    first = event.get("firstTimestamp") or event.get("eventTime")
    series = event.get("series", {})
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    source = event.get("source", {})
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or ("" if source.get("component") else event.get("reportingInstance", ""))
    count = series.get("count") or event.get("count") or 1
    return [
        timestamps.age(last, now), event.get("type", ""), event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}", about.get("fieldPath", ""),
        f"{component}, {host}" if host else component, event.get("message", "").strip(),
        timestamps.age(first, now), count,
        _name(event),
    ]  # fmt: skip


def _lease(document: Document, now: float) -> Row:
    return [_name(document), document["spec"].get("holderIdentity", ""), age(document, now)]


def _priority(document: Document, now: float) -> Row:
    default = bool(document.get("globalDefault"))
    return [
        _name(document),
        document.get("value", 0),
        default,
        age(document, now),
        document.get("preemptionPolicy", ""),
    ]


def _revision(document: Document, now: float) -> Row:
    owners = document["metadata"].get("ownerReferences", ())
    owner = next((each for each in owners if each.get("controller")), None)
    owner_text = (
        f"{owner['kind'].lower()}.{owner['apiVersion'].rpartition('/')[0]}/{owner['name']}" if owner else "<none>"
    )
    return [_name(document), owner_text, document.get("revision", 0), age(document, now)]


def _resource_claim(document: Document, now: float) -> Row:
    status = document.get("status", {})
    words = ["deleted"] if "deletionTimestamp" in document["metadata"] else []
    words += ["allocated"] if status.get("allocation") else ["pending"] if not words else []
    words += ["reserved"] if status.get("reservedFor") else []
    return [_name(document), ",".join(words), age(document, now)]


def _slice(document: Document, now: float) -> Row:
    spec = document["spec"]
    pool = spec.get("pool", {}).get("name", "")
    return [_name(document), spec.get("nodeName", ""), spec.get("driver", ""), pool, age(document, now)]


def _quota(document: Document, now: float) -> Row:
    status = document.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    told = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in told.items() if name.startswith("limits.")]
    requests = [text for name, text in told.items() if not name.startswith("limits.")]
    return [_name(document), ", ".join(requests), ", ".join(limits), age(document, now)]


def _network_policy(document: Document, now: float) -> Row:
    return [_name(document), selector_text(document["spec"].get("podSelector")), age(document, now)]


_EVENTS = (
    Column("Last Seen"), Column("Type"), Column("Reason"), Column("Object"), Column("Subobject", priority=1),
    Column("Source", priority=1), Column("Message"), Column("First Seen", priority=1), Column("Count", priority=1),
    Column("Name", format="name", priority=1),
)  # fmt: skip
_PRIORITIES = (
    NAME, Column("Value", "integer"), Column("Global-Default", "boolean"), Column("Age"), Column("PreemptionPolicy"),
)  # fmt: skip
_NODE_WIDE = ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")

PRINTERS = {
    "nodes": TablePrinter(columns("Status", "Roles", "Age", "Version", wide=_NODE_WIDE), _node),
    "namespaces": TablePrinter(columns("Status", "Age"), _namespace),
    "services": TablePrinter(
        columns("Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)), _service
    ),
    "configmaps": TablePrinter(columns("Data", "Age"), _config_map),
    "networkpolicies.networking.k8s.io": TablePrinter(columns("Pod-Selector", "Age"), _network_policy),
    "resourcequotas": TablePrinter(columns("Request", "Limit", "Age"), _quota),
    "secrets": TablePrinter(columns("Type", "Data", "Age"), _secret),
    "events": TablePrinter(_EVENTS, _event),
    "leases.coordination.k8s.io": TablePrinter(columns("Holder", "Age"), _lease),
    "priorityclasses.scheduling.k8s.io": TablePrinter(_PRIORITIES, _priority),
    "controllerrevisions.apps": TablePrinter(columns("Controller", "Revision", "Age"), _revision),
    "resourceclaims.resource.k8s.io": TablePrinter(columns("State", "Age"), _resource_claim),
    "resourceslices.resource.k8s.io": TablePrinter(columns("Node", "Driver", "Pool", "Age"), _slice),
}  # fmt: skip
