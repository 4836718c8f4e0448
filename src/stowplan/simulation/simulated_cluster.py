"""The cluster of a run: an embedded API server with its controllers and kubelets, in virtual time, without HTTP.

It takes the objects of a cluster (`load`) and the events of a stream (`happen`). Both go through the verbs of the API,
so what a server would refuse is refused here, with the server's words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stowplan.embedded import manifests
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.kubelets import RUN_SECONDS
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource
from stowplan.objects.errors import ConfigError
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.settings import START, RunSettings
from stowplan.simulation.stream_events import (
    AppliedObject,
    Arrival,
    DeletedObject,
    Document,
    NodeCordon,
    NodeFailure,
    NodeRecovery,
    StreamEvent,
)

KEEP = 16  # changes of each kind that are kept for watches: nobody watches
ENDLESS = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet")
_UNREACHABLE = "node.kubernetes.io/unreachable"
_EFFECTS = ("NoSchedule", "NoExecute")


class SimulatedCluster:
    """A cluster at `time`, in seconds since 1970. Only the run moves it.

    cluster = SimulatedCluster(settings)
    cluster.load(cluster_from(text, "dump.yaml", problems), problems)
    """

    def __init__(self, settings: RunSettings = RunSettings()) -> None:  # noqa: B008  # it is frozen
        self.time = START
        self.embedded = Embedded(
            seed=settings.seed,
            clock=lambda: self.time,
            keep=KEEP,
            start_seconds=settings.start_seconds,
            stop_seconds=settings.stop_seconds,
            job_seconds=settings.job_seconds,
        )
        self.api, self.controllers = self.embedded.api, self.embedded.controllers

    # -- the start

    def load(self, pairs: Iterable[tuple[str, Document]], problems: InputProblems) -> Counter[str]:
        """Create the objects of the cluster. Return the number of objects of each kind that is not used."""
        return manifests.load_documents(self.api, pairs, self.time, problems.add, problems.add).skipped

    # -- events

    def happen(self, event: StreamEvent) -> StreamEvent | None:
        """Let an event happen. Return the one that follows from it later, if any.

        Raises ConfigError, with the place of the event, if the server would refuse it.
        """
        try:
            return self._happen(event)
        except ApiError as error:
            raise ConfigError(error.message, file=event.file, path=event.place) from None
        except ConfigError as error:
            raise ConfigError(error.problem, file=event.file, path=event.place, remedy=error.remedy) from None

    def _happen(self, event: StreamEvent) -> StreamEvent | None:
        match event:
            case Arrival():
                return self._arrive(event)
            case AppliedObject():
                self.apply(event.document)
            case DeletedObject():
                self.delete(event)
            case NodeFailure():
                self._report(event.node, reachable=False)
            case NodeRecovery():
                self._report(event.node, reachable=True)
            case NodeCordon():
                self._cordon(event.node, event.cordoned)
            case _:
                raise TypeError(f"{type(event).__name__} is no event of a cluster")
        return None

    def _arrive(self, event: Arrival) -> DeletedObject | None:
        document, kind = event.document, event.document["kind"]
        if event.duration is not None and kind not in ENDLESS:
            document = with_duration(document, event.duration)
        created = self.create(document)
        if event.duration is None or kind not in ENDLESS:
            return None
        metadata = created["metadata"]
        return DeletedObject(
            at=event.at + event.duration,
            file=event.file,
            place=event.place,
            api_version=document["apiVersion"],
            kind=kind,
            name=metadata["name"],
            namespace=metadata["namespace"],
        )

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        """Create an object, and its namespace if that does not exist. `dry_run`: only the namespace."""
        resource = self._resource(document.get("apiVersion", ""), document.get("kind", ""))
        namespace = document["metadata"].get("namespace", "default") if resource.namespaced else ""
        options = RequestOptions(self.time, "Strict", dry_run)
        if namespace and self.api.store.get("namespaces", namespace) is None:
            metadata = {"metadata": {"name": namespace}}
            self.api.create(self._resource("v1", "Namespace"), "", metadata, RequestOptions(self.time, "Strict"))
        return self.api.create(resource, namespace, document, options)

    def apply(self, document: Document) -> None:
        """Create an object, or replace the one with its name, whose status stays."""
        resource = self._resource(document.get("apiVersion", ""), document.get("kind", ""))
        namespace = document["metadata"].get("namespace", "default") if resource.namespaced else ""
        name = document["metadata"].get("name", "")
        old = self.api.store.get(resource.collection, resource.key(namespace, name)) if name else None
        if old is None:
            self.create(document)
            return
        kept = {key: old["metadata"][key] for key in ("uid", "resourceVersion")}
        new = {**document, "metadata": {**document["metadata"], **kept}}
        self.api.update(resource, namespace, name, new, RequestOptions(self.time, "Strict"))

    def delete(self, event: DeletedObject) -> None:
        """Delete an object, and what it owns."""
        resource = self._resource(event.api_version, event.kind)
        namespace = (event.namespace or "default") if resource.namespaced else ""
        options = DeleteOptions(propagation_policy="Background")
        self.api.delete(resource, namespace, event.name, options, RequestOptions(self.time))

    def forget(self, key: str) -> None:
        """Remove a pod that has finished."""
        if self.api.store.get("pods", key) is not None:
            self.api.store.remove("pods", key)

    def _report(self, name: str, *, reachable: bool) -> None:
        """Set the Ready condition of a node and its taints, as the node lifecycle controller does."""
        nodes = self._resource("v1", "Node")
        node = self.api.get(nodes, "", name)
        status = dict(node.get("status", {}))
        status["conditions"] = queries.with_condition(
            status.get("conditions", []), "Ready", "True" if reachable else "Unknown", self.time,
            "KubeletReady" if reachable else "NodeStatusUnknown",
        )  # fmt: skip
        taints = [each for each in node["spec"].get("taints", ()) if each["key"] != _UNREACHABLE]
        taints += [] if reachable else [{"key": _UNREACHABLE, "effect": effect} for effect in _EFFECTS]
        spec = {key: value for key, value in node["spec"].items() if key != "taints"}
        new = {**node, "spec": {**spec, "taints": taints} if taints else spec, "status": status}
        self.api.write(nodes, new, RequestOptions(self.time))

    def _cordon(self, name: str, cordoned: bool) -> None:
        nodes = self._resource("v1", "Node")
        node = self.api.get(nodes, "", name)
        spec = {key: value for key, value in node["spec"].items() if key != "unschedulable"}
        spec |= {"unschedulable": True} if cordoned else {}
        self.api.write(nodes, {**node, "spec": spec}, RequestOptions(self.time))

    def _resource(self, version: str, kind: str) -> ServedResource:
        found = self.api.catalogue.of_kind(str(version), str(kind))
        if found is None:
            raise ConfigError(f"{kind or 'an object without a kind'} of {version or 'no version'} is not served")
        return found


def with_duration(document: Document, duration: float) -> Document:
    """Return a pod, or a Job, whose pods run so long."""
    if document["kind"] != "Job":
        metadata = document["metadata"]
        annotations = {**metadata.get("annotations", {}), RUN_SECONDS: repr(float(duration))}
        return {**document, "metadata": {**metadata, "annotations": annotations}}
    template = document["spec"]["template"]
    inner = with_duration({"kind": "Pod", "metadata": template.get("metadata", {})}, duration)["metadata"]
    return {**document, "spec": {**document["spec"], "template": {**template, "metadata": inner}}}
