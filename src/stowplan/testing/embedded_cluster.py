"""`EmbeddedCluster`: a Kubernetes cluster in the process of a test, with a Stowplan scheduler if the test wants one.

    with EmbeddedCluster(nodes=2, manifests=["quota.yaml"], scheduler="config.yaml") as cluster:
        cluster.apply("app.yaml")
        cluster.wait_until_running("app=web", count=3)

The API server, the controllers and the simulated kubelets are those of `stowplan up`, the scheduler is that of
`stowplan run`. They run in a thread with an event loop of its own, so a test is plain code without `await`. A `World`
is quicker and has a clock that the test moves; this is for what a `World` leaves out: real manifests and definitions,
the API's own validation, controllers, kubectl, the configuration file.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar, cast

from rich.console import Console

from stowplan.apps.explain import command as explain
from stowplan.apps.logging import Log
from stowplan.apps.run.service import SchedulerService
from stowplan.apps.up import command as up
from stowplan.apps.up import kubeconfig_file
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.resources import ServedResource
from stowplan.kube import credentials, event_loop
from stowplan.kube.action_requests import MERGE_PATCH
from stowplan.kube.client import Client, encode
from stowplan.kube.discovery import Discovery
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import Response
from stowplan.kube.transport import JSON, Transport
from stowplan.objects import yaml_text
from stowplan.objects.errors import ConfigError
from stowplan.testing import cluster_nodes, cluster_picture
from stowplan.testing.cluster_nodes import Nodes
from stowplan.testing.cluster_waits import ClusterWaits, Document

T = TypeVar("T")
Manifests: TypeAlias = str | Path | Mapping[str, Any]

ANSWER_WITHIN = 60.0  # seconds for a request or a start; more than that is a bug
WIDTH = 100  # of explanations


class EmbeddedCluster(ClusterWaits):
    """A cluster in this process: an API server with controllers, simulated kubelets, and a scheduler if asked for.

        with EmbeddedCluster(nodes=2, scheduler=True) as cluster:
            cluster.apply("pod.yaml")
            assert cluster.wait_until_scheduled("web") == "node-1"

    In a test it is the fixture `embedded_cluster` of the pytest plugin that is installed with Stowplan. Each object has
    a key, "namespace/name"; the name alone is enough in the namespace `default`.
    """

    allow_errors = False  # True: errors in the scheduler's log do not fail `stop`

    def __init__(
        self,
        *,
        nodes: Nodes = 3,
        manifests: Iterable[Manifests] = (),
        scheduler: bool | Manifests = False,
        beside: Path | None = None,
        folder: Path | None = None,
        v: int = 2,
    ) -> None:
        """`nodes`: how many (node-0, node-1, … in zone-a, zone-b, zone-c, with 4 CPUs and 16Gi each); or a list of
        manifests or `a_node(…)`; or manifests with numbers of copies: `{"large.yaml": 2}` is large-0 and large-1.

        `manifests`: what is applied first. `scheduler`: True starts one with the default configuration, a file, text or
        document is its configuration (see `start_scheduler`). `beside`: where relative paths start. `folder`: for the
        kubeconfig; a temporary one without it. `v`: the verbosity of the scheduler's log.
        """
        self._nodes, self._manifests, self._scheduler, self._v = nodes, manifests, scheduler, v
        self._folder, self._beside = folder, beside or Path()
        self._config: Path | None = None
        self._code: tuple[Path, ...] = ()
        self.kubeconfig = Path()  # a file, once the cluster is started; kubectl --kubeconfig can use it
        self._log = io.StringIO()
        super().__init__()
        self._running = AsyncExitStack()  # the server and the client
        self._scheduling: AsyncExitStack | None = None
        self._scheduler_task: asyncio.Future[int] | None = None

    # -- from start to end

    def start(self) -> Self:
        """Start what the constructor was asked for. `with EmbeddedCluster() as cluster:` does it, too."""
        self._temporary = tempfile.TemporaryDirectory(prefix="stowplan-")
        self.kubeconfig = (self._folder or Path(self._temporary.name)) / "kubeconfig"
        self._loop = event_loop.new()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded cluster", daemon=True)
        self._thread.start()
        try:
            self._call(self._start())
            if not isinstance(self._nodes, int):
                self.apply(*cluster_nodes.documents(self._nodes, self._beside))
            self.apply(*self._manifests)
            if self._scheduler is not False:
                self.start_scheduler(None if self._scheduler is True else self._scheduler)
        except BaseException:
            self._close()
            raise
        return self

    async def _start(self) -> None:
        self._embedded = await self._running.enter_async_context(Embedded())
        self._embedded.api.store.listeners.append(lambda _: self._changed.set())
        if isinstance(self._nodes, int):  # there may be thousands, too many for requests
            for document in cluster_nodes.documents(self._nodes, self._beside):
                up.create(self._embedded, "v1", "Node", document)
        kubeconfig_file.write(self.kubeconfig, self._embedded.kubeconfig())
        self._client = Client(Transport(credentials.load(str(self.kubeconfig))))
        self._running.push_async_callback(self._client.close)
        self._discovery = Discovery(self._client)

    def stop(self) -> None:
        """End everything. Raises AssertionError if the scheduler or the server reported an error."""
        try:
            self.stop_scheduler()
        finally:
            problems = list(self._embedded.problems)
            self._close()
        assert problems == [], f"the embedded cluster has a bug: {problems}"
        errors = [] if self.allow_errors else self.errors
        assert not errors, "the scheduler reported errors:\n" + "\n".join(errors)

    def _close(self) -> None:
        self._call(self._running.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ANSWER_WITHIN)
        self._loop.close()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        self.allow_errors = self.allow_errors or kind is not None  # the error of the test itself comes first
        self.stop()

    # -- the scheduler

    def start_scheduler(self, config: Manifests | None = None) -> None:
        """Start a Stowplan scheduler, and wait until it has seen the cluster.

        `config`: a KubeSchedulerConfiguration, as a file, as text or as a document; without it the default one. Plugins
        that it names by path (`flavour.py:Flavour`) are in the folder of the file, or in `beside`.

            cluster.start_scheduler(config=Path("config.yaml"))
        """
        assert self._scheduling is None, "a scheduler runs already; stop_scheduler() ends it"
        self._config = None if config is None else self._config_file(config)
        self._code = (self._beside,) if self._config is None else (self._config.parent, self._beside)
        self._call(self._start_scheduler())

    def _config_file(self, config: Manifests) -> Path:
        path = cluster_picture.path_of(config, self._beside)
        if path is not None:
            return path
        if isinstance(config, str) and "\n" not in config and ":" not in config:
            return Path(config)  # it does not exist, and the error says so
        file = self.kubeconfig.with_name("scheduler-config.yaml")
        text = config if isinstance(config, str) else yaml_text.dump(dict(cast("Mapping[str, Any]", config)))
        file.write_text(text, encoding="utf-8")
        return file

    async def _start_scheduler(self) -> None:
        stack, log = AsyncExitStack(), Log(self._v, stream=self._log)
        started = up.scheduling(self.kubeconfig, log, self._config, self._code)
        program, working = await stack.enter_async_context(started)
        self._scheduling, self._scheduler_task = stack, working
        synced = asyncio.ensure_future(_until_synced(program))
        await asyncio.wait((synced, working), return_when=asyncio.FIRST_COMPLETED)
        synced.cancel()
        if working.done():
            self._scheduling = None
            working.result()  # raises why it ended
            raise AssertionError(f"the scheduler ended at once:\n{self.log}")

    def stop_scheduler(self) -> None:
        """End the scheduler in good order, if it runs. `start_scheduler` starts another, as after a restart."""
        if self._scheduling is not None:
            stack, self._scheduling = self._scheduling, None
            self._call(stack.aclose())
            assert self._scheduler_task is not None
            code = self._scheduler_task.result()
            assert code == 0, f"the scheduler ended with exit code {code}:\n{self.log}"

    @property
    def scheduler_runs(self) -> bool:
        """True if `start_scheduler` has started a scheduler, and it has not been stopped."""
        return self._scheduling is not None

    @property
    def log(self) -> str:
        """What the scheduler has logged so far."""
        return self._log.getvalue()

    @property
    def errors(self) -> list[str]:
        """The errors in the scheduler's log, such as those of a plugin that raised."""
        return [line for line in self.log.splitlines() if line.startswith("E")]

    # -- objects

    def apply(self, *manifests: Manifests) -> list[Document]:
        """Create objects, or change them if they exist, and return them as the server has them.

        A manifest is a file, a folder, a text with any number of YAML documents, or a document. Definitions and
        namespaces may come before the objects that need them. A `status` is written, too. A field that the kind does
        not have is an error.

            cluster.apply(Path("crd.yaml"), "kind: ConfigMap\\napiVersion: v1\\nmetadata: {name: settings}")
        """
        documents = [document for each in manifests for document in cluster_picture.documents(each, self._beside)]
        return [self._call(self._apply(document)) for document in documents]

    async def _apply(self, document: Document) -> Document:
        version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        resource = await self._discovery.resource(version, kind)
        if resource is None:
            raise ConfigError(f"the cluster has no {kind} of {version}", remedy="apply its definition first")
        metadata = document.get("metadata") or {}
        name, namespace = metadata.get("name", ""), metadata.get("namespace", "default") if resource.namespaced else ""
        key = f"{namespace}/{name}" if namespace else name
        answer = await self._send("POST", resource.collection(namespace), document)
        if answer.status == 409:
            answer = await self._send("PATCH", resource.path(key), document, MERGE_PATCH)
        answer = answer.checked(f"apply {kind} {key}")
        if document.get("status"):
            body = {"status": document["status"]}
            written = await self._client.patch(resource, key, body, subresource="status")
            answer = written if written.status != 404 else answer  # a kind without the subresource
        return cluster_picture.decoded(answer.checked(f"apply the status of {kind} {key}"))

    async def _send(self, method: str, path: str, document: Mapping[str, Any], content_type: str = JSON) -> Response:
        """Send a document as kubectl does: the server refuses fields that it does not know."""
        strict, body = {"fieldValidation": "Strict"}, encode(document)
        return await self._client.transport.request(method, path, params=strict, body=body, content_type=content_type)

    def get(self, kind: str, key: str) -> Document | None:
        """Return an object by its kind and key, or None.

        `kind` is a kind such as "Pod"; if several groups have it, "PodGroup.scheduling.x-k8s.io".

            cluster.get("Deployment", "default/web")["status"]["readyReplicas"]
        """
        answer = self._ask(kind, lambda found: self._client.get(found, _full(key, found)))
        return None if answer.status == 404 else cluster_picture.decoded(answer.checked(f"get {kind} {key}"))

    def patch(self, kind: str, key: str, change: Mapping[str, Any]) -> Document:
        """Change some fields of an object, and return it. It is a merge patch: a list replaces the list that was there.

        cluster.patch("Deployment", "shop/web", {"spec": {"replicas": 5}})
        """
        answer = self._ask(kind, lambda found: self._send("PATCH", found.path(_full(key, found)), change, MERGE_PATCH))
        return cluster_picture.decoded(answer.checked(f"patch {kind} {key}"))

    def delete(self, kind: str, key: str) -> None:
        """Delete an object, and what it owns. One that is gone already is fine.

        cluster.delete("Pod", "default/web")
        """
        answer = self._ask(kind, lambda found: self._client.delete(found, _full(key, found)))
        if answer.status != 404:
            answer.checked(f"delete {kind} {key}")

    def objects(self, kind: str, namespace: str = "", selector: str = "") -> list[Document]:
        """Return all objects of a kind, or those of one namespace, or with these labels.

        assert [each["metadata"]["name"] for each in cluster.objects("Node")] == ["node-0", "node-1"]
        """
        params, resource = {"labelSelector": selector} if selector else {}, self._resource(kind)
        answer = self._call(self._client.transport.request("GET", resource.collection(namespace), params=params))
        items: list[Document] = cluster_picture.decoded(answer.checked(f"list {kind}"))["items"]
        return items

    def pods(self, namespace: str = "", selector: str = "") -> list[Document]:
        """Return all pods, or those of one namespace, or with these labels."""
        return self.objects("Pod", namespace, selector)

    def node_of(self, key: str) -> str:
        """Return the node of a pod; "" while it has none.

        cluster.wait_until(lambda: cluster.node_of("default/web") == "node-1")
        """
        return str(((self.get("Pod", key) or {}).get("spec") or {}).get("nodeName", ""))

    def events(self, name: str = "", *, reason: str = "") -> list[Document]:
        """Return the events, as far as they are about an object of this name and have this reason.

        assert "Insufficient cpu" in cluster.events("web", reason="FailedScheduling")[-1]["note"]
        """
        found = self.objects("Event.events.k8s.io")
        return [
            each
            for each in sorted(found, key=lambda each: str(each.get("eventTime")))
            if name in ("", (each.get("regarding") or {}).get("name")) and reason in ("", each.get("reason"))
        ]

    # -- what there is

    def explain(self, *names: str, namespace: str = "default") -> str:
        """Return what `stowplan explain` says with the scheduler's configuration, about pods or all pending ones.

        assert "lower the cpu request" in cluster.explain("large")
        """
        said = io.StringIO()
        options = explain.ExplainOptions(
            names=names,
            namespace=namespace,
            kubeconfig=str(self.kubeconfig),
            config=self._config,
            plugin_path=self._code,
        )
        explain.run(options, Console(file=said, width=WIDTH, highlight=False, markup=False, emoji=False))
        return said.getvalue()

    def picture(self) -> str:
        """Return the cluster as a text for a failing test: its pods, events and log."""
        return cluster_picture.text(self.pods(), self.events(), self.log)

    # -- between the test and the loop's thread

    def _ask(self, kind: str, question: Callable[[ApiResource], Coroutine[Any, Any, Response]]) -> Response:
        return self._call(question(self._resource(kind)))

    def _resource(self, kind: str) -> ApiResource:
        name, _, group = kind.partition(".")
        served: list[ServedResource] = [each for each in self._embedded.api.catalogue if "get" in each.verbs]
        for found in served:
            if found.kind == name and (not group or found.group == group):
                return ApiResource(name, found.plural, found.group, (found.version,), found.namespaced)
        alike = [each.kind for each in served if each.kind.lower() in (name.lower(), name.lower().removesuffix("s"))]
        remedy = f"did you mean {alike[0]}?" if alike else "apply its definition first"
        raise ConfigError(f"the cluster has no kind {kind}", remedy=remedy)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_WITHIN)


def _full(key: str, resource: ApiResource) -> str:
    return f"default/{key}" if resource.namespaced and "/" not in key else key


async def _until_synced(program: SchedulerService) -> None:
    while not (program.synced and program.leading):
        await asyncio.sleep(0.005)
