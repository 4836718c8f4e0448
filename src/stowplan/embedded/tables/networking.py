"""Endpoints, EndpointSlices, Ingresses, IngressClasses, HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.embedded.admission.networking import DEFAULT_CLASS
from stowplan.embedded.documents import Document
from stowplan.embedded.tables.columns import Row, TablePrinter, columns
from stowplan.embedded.timestamps import age

_MOST = 3  # addresses, ports or hosts in a cell
_MOST_METRICS = 2


def _ends(document: Document, now: float) -> tuple[str, str]:
    """The first cell and the last."""
    metadata = document["metadata"]
    return metadata["name"], age(metadata.get("creationTimestamp"), now)


def _endpoints(document: Document, now: float) -> Row:
    name, old = _ends(document, now)
    found: list[str] = []
    for subset in document.get("subsets", ()):
        addresses = [each["ip"] for each in subset.get("addresses", ())]
        ports = subset.get("ports", ())
        found += [_joined(ip, port["port"]) for port in ports for ip in addresses] if ports else addresses
    return [name, _shortened(found, ",") or "<none>", old]


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _shortened(texts: Sequence[str], between: str) -> str:
    more = f" + {len(texts) - _MOST} more..." if len(texts) > _MOST else ""
    return between.join(texts[:_MOST]) + more


def _endpoint_slice(document: Document, now: float) -> Row:
    name, old = _ends(document, now)
    ports = [_slice_port(port) for port in document.get("ports", ())]
    addresses = [each for endpoint in document.get("endpoints") or () for each in endpoint.get("addresses", ())]
    shown = [_shortened(texts, ",") or "<unset>" for texts in (ports, addresses)]
    return [name, document.get("addressType", ""), *shown, old]


def _slice_port(port: Document) -> str:
    return str(port["port"]) if port.get("port") is not None else port.get("name") or "*"


def _ingress(document: Document, now: float) -> Row:
    name, old = _ends(document, now)
    spec = document["spec"]
    hosts = [rule["host"] for rule in spec.get("rules", ()) if rule.get("host")]
    reached = document.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    addresses = ",".join(sorted({each.get("ip") or each.get("hostname", "") for each in reached}))
    ports = "80, 443" if spec.get("tls") else "80"
    return [name, spec.get("ingressClassName") or "<none>", _shortened(hosts, ",") or "*", addresses, ports, old]


def _ingress_class(document: Document, now: float) -> Row:
    name, old = _ends(document, now)
    found = document["spec"].get("parameters")
    text = "<none>"
    if found is not None:
        kind = f"{found['kind']}.{found['apiGroup']}" if found.get("apiGroup") else found["kind"]
        text = f"{kind}/{found['name']}"
    default = document["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true"
    return [f"{name} (default)" if default else name, document["spec"].get("controller", ""), text, old]


def _autoscaler(document: Document, now: float) -> Row:
    name, old = _ends(document, now)
    spec, status = document["spec"], document.get("status", {})
    target = spec["scaleTargetRef"]
    bounds = [str(spec.get("minReplicas", "<unset>")), spec["maxReplicas"], status.get("currentReplicas", 0)]
    return [name, f"{target['kind']}/{target['name']}", _targets(spec.get("metrics", ())), *bounds, old]


def _targets(metrics: Sequence[Document]) -> str:
    """What each metric is, which nobody measures here, and what it should be."""
    if not metrics:
        return "<none>"
    texts = [_target(metric) for metric in metrics]
    more = f" + {len(texts) - _MOST_METRICS} more..." if len(texts) > _MOST_METRICS else ""
    return ", ".join(texts[:_MOST_METRICS]) + more


def _target(metric: Document) -> str:
    kind = str(metric.get("type", ""))
    source = metric.get(kind[:1].lower() + kind[1:], {})
    target = source.get("target", {})
    if "averageUtilization" in target:
        wanted = f"{target['averageUtilization']}%"
    else:
        wanted = f"{target['averageValue']} (avg)" if "averageValue" in target else str(target.get("value", "<auto>"))
    if kind in ("Pods", "Object", "External"):
        return f"<unknown>/{wanted.removesuffix(' (avg)') if kind == 'Pods' else wanted}"
    wanted = wanted.removesuffix(" (avg)")
    return f"{source.get('name', '')}: <unknown>/{wanted}"


PRINTERS = {
    "endpoints": TablePrinter(columns("Endpoints", "Age"), _endpoints),
    "endpointslices.discovery.k8s.io": TablePrinter(
        columns("AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice
    ),
    "ingresses.networking.k8s.io": TablePrinter(columns("Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    "ingressclasses.networking.k8s.io": TablePrinter(columns("Controller", "Parameters", "Age"), _ingress_class),
    "horizontalpodautoscalers.autoscaling": TablePrinter(
        columns("Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age", integers=("MaxPods", "Replicas")),
        _autoscaler,
    ),
}
