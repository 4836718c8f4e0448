"""The API's defaults of pods and pod templates, and the fields that admission plugins add."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.timestamps import stamp
from stowplan.objects import quantity

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
_FILES_MODE = 420  # 0644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COMPUTE = ("cpu", "memory")


def defaults(pod: Document) -> None:
    spec = pod["spec"]
    template_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        resources = container.setdefault("resources", {})
        for name, amount in resources.get("limits", {}).items():
            resources.setdefault("requests", {}).setdefault(name, amount)
    if spec.get("tolerations") == []:
        del spec["tolerations"]


def template_spec(spec: Document) -> None:
    """Set the defaults that pods and pod templates have in common."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in _containers(spec):
        _container(container, spec)
    for volume in spec.get("volumes", ()):
        _volume(volume)


def _containers(spec: Document) -> list[Document]:
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]


def _container(container: Document, spec: Document) -> None:
    image = container.get("image", "")
    latest = ":" not in image.rsplit("/", 1)[-1] or image.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest and "@" not in image else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if spec.get("hostNetwork") and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])
    for variable in container.get("env", ()):
        if reference := variable.get("valueFrom", {}).get("fieldRef"):
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        if probe := container.get(name):
            _probe(probe)


def _probe(probe: Document) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe.setdefault(name, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("scheme", "HTTP")
        probe["httpGet"].setdefault("path", "/")


def _volume(volume: Document) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _FILES_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if template := volume.get("ephemeral", {}).get("volumeClaimTemplate"):
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def admit(pod: Document, context: AdmissionContext) -> None:
    spec = pod["spec"]
    _set_priority(pod, context)
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    _tolerate(spec)
    pod["status"] = {"phase": "Pending", "qosClass": quality(spec)}
    if spec.get("schedulingGates"):
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        condition["message"] = "Scheduling is blocked due to non-empty scheduling gates"
        pod["status"]["conditions"] = [condition | {"lastTransitionTime": stamp(context.now)}]


def _set_priority(pod: Document, context: AdmissionContext) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    found = context.store.get(_PRIORITY_CLASSES, name) if name else _default_class(context)
    if name and found is None:
        message = f'pods "{pod["metadata"]["name"]}" is forbidden: no PriorityClass with name {name} was found'
        raise ApiError(403, "Forbidden", message, {"name": pod["metadata"]["name"], "kind": "pods"})
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec["priority"] = found.get("value", 0) if found else 0
    spec.setdefault("preemptionPolicy", (found or {}).get("preemptionPolicy", "PreemptLowerPriority"))


def _default_class(context: AdmissionContext) -> Document | None:
    """The default class with the lowest value."""
    classes = [each.document for each in context.store.all(_PRIORITY_CLASSES) if each.document.get("globalDefault")]
    return min(classes, key=lambda each: each.get("value", 0), default=None)


def _tolerate(spec: Document) -> None:
    """Tolerate a lost node for five minutes (DefaultTolerationSeconds)."""
    known = spec.get("tolerations", [])
    for key in _TOLERATED:
        if not any(_covers(toleration, key) for toleration in known):
            spec.setdefault("tolerations", []).append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            )


def _covers(toleration: Document, key: str) -> bool:
    return toleration.get("key", key) in (key, "") and toleration.get("effect", "NoExecute") in ("NoExecute", "")


def quality(spec: Document) -> str:
    """The QoS class: Guaranteed, Burstable or BestEffort."""
    containers = [each.get("resources", {}) for each in _containers(spec)]
    named = [(one.get("requests", {}), one.get("limits", {})) for one in containers]
    amounts = [part.get(name) for pair in named for part in pair for name in _COMPUTE]
    if not any(amount and quantity.nanos(amount) for amount in amounts):
        return "BestEffort"
    if all(name in limits and limits[name] == requests.get(name) for requests, limits in named for name in _COMPUTE):
        return "Guaranteed"
    return "Burstable"
