"""The embedded cluster: an API, its controllers and an HTTP server, in one event loop.

async with Embedded() as cluster:
    Path("kubeconfig").write_text(cluster.kubeconfig())
"""

from __future__ import annotations

import asyncio
import base64
import random
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from stowplan.embedded import manifests
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import SYSTEM_NAMESPACES, Api
from stowplan.embedded.authorization import default_roles
from stowplan.embedded.authorization.escalation import EscalationGuard
from stowplan.embedded.authorization.role_aggregation import RoleAggregation
from stowplan.embedded.authorization.users import ADMIN, ApiUser
from stowplan.embedded.controllers.action_runner import ActionRunner
from stowplan.embedded.controllers.controller_manager import ControllerManager
from stowplan.embedded.controllers.kubelets import SimulatedKubelets
from stowplan.embedded.controllers.registry import all_controllers
from stowplan.embedded.documents import Document
from stowplan.embedded.http import certificates
from stowplan.embedded.http.access_control import access_to
from stowplan.embedded.http.handlers import Handlers
from stowplan.embedded.http.server import Server
from stowplan.embedded.manifests import LoadedManifests
from stowplan.embedded.store import KEEP, DocumentStore, StoreChange
from stowplan.objects import yaml_text

MARK = "stowplan.embedded"  # an extension of kubeconfigs that are ours: with it, which cluster of ours
_CONTROLLER_SLICE = 0.02  # seconds that controllers run before the event loop serves requests
_BATCH_DELAY = (0.005, 0.25)  # minimum and maximum seconds between a change and the next run of the controllers
_DEFINITIONS = Path(__file__).with_name("definitions")  # of the kinds that the built-in policies read
_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Embedded:
    """A cluster in this process.

    `seed` makes names and uids repeatable. `crds` are files or folders with more CustomResourceDefinitions. `keep` is
    the number of changes of each resource that a watch can start from. With `rbac` requests are authenticated and
    authorized, over HTTPS. `start_seconds`, `stop_seconds` and `job_seconds` are the delays of the simulated kubelets.
    """

    def __init__(
        self, *, seed: int | None = None, clock: Callable[[], float] = time.time, keep: int = KEEP,
        crds: Iterable[str | Path] = (), start_seconds: float = 0.0, stop_seconds: float = 0.0,
        job_seconds: float = 1.0, with_controllers: bool = True, rbac: bool = False,
    ) -> None:  # fmt: skip
        self.clock, self.id, self.rbac = clock, secrets.token_hex(8), rbac
        self.api = Api(DocumentStore(keep=keep), random.Random(seed))
        self._token: str | None = None
        self._url, self.certificate = "", b""
        access = access_to(self.api.store, secrets.token_bytes(32), enforced=rbac)
        self.handlers = Handlers(self.api, clock, access=access)
        self.server = Server(self.handlers)
        if rbac:
            self.api.escalation = EscalationGuard(access.authorizer)
        self._bootstrap()
        self._create_default_roles(random.Random(None if seed is None else f"roles {seed}"))
        manifests.load(self.api, (_DEFINITIONS, *crds), clock())
        kubelets = SimulatedKubelets(
            self.api.store, start_seconds=start_seconds, stop_seconds=stop_seconds, job_seconds=job_seconds
        )
        running = all_controllers(self.api.store, kubelets, self.api.limits.ledger) if with_controllers else []
        running += [RoleAggregation(self.api.store)] if with_controllers else []
        self.controllers = ControllerManager(self.api.store, running, ActionRunner(self.api).perform)
        self.api.store.listeners.append(self._changed)
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def _bootstrap(self) -> None:
        options = RequestOptions(self.clock(), "Ignore")
        namespaces = self.api.catalogue.find("", "v1", "namespaces")
        priorities = self.api.catalogue.find("scheduling.k8s.io", "v1", "priorityclasses")
        assert namespaces is not None and priorities is not None
        for name in SYSTEM_NAMESPACES:
            self.api.create(namespaces, "", {"metadata": {"name": name}}, options)
        for name, value in _PRIORITY_CLASSES.items():
            self.api.create(priorities, "", {"metadata": {"name": name}, "value": value}, options)

    def _create_default_roles(self, generator: random.Random) -> None:
        """Their uids have a generator of their own: what a seed makes of everything else does not depend on them."""
        options, usual = RequestOptions(self.clock(), "Ignore"), self.api.generator
        self.api.generator = generator
        for document in default_roles.documents():
            resource = self.api.catalogue.of_kind(document["apiVersion"], document["kind"])
            assert resource is not None
            self.api.create(resource, document["metadata"].get("namespace", ""), document, options)
        self.api.generator = usual

    # -- running

    async def start(self, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> str:
        """Serve requests, and return the URL. The token is the administrator's; RBAC makes one if none is given.

        Without RBAC any address but loopback needs a token.
        """
        tls = None
        self._token = self.server.token = token or (secrets.token_hex(16) if self.rbac else None)
        if self._token:
            self.handlers.access.authenticator.add(self._token, ADMIN)
        if self.rbac:
            tls, self.certificate = certificates.self_signed(host)
        self._work = asyncio.Event()
        self._url = await self.server.start(host, port, tls)
        self._task = asyncio.create_task(self._run(), name="embedded controllers")
        return self._url

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.server.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _changed(self, _change: StoreChange) -> None:
        self._work.set()

    async def _run(self) -> None:
        """Alternate between controllers and requests."""
        while True:
            self._work.clear()
            begun = time.monotonic()
            until = begun + _CONTROLLER_SLICE
            while self._step():
                if time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + _CONTROLLER_SLICE
            # Wait as long as the controllers ran: half of the time goes to requests, and changes are batched.
            delay = min(max(time.monotonic() - begun, _BATCH_DELAY[0]), _BATCH_DELAY[1])
            due = self.controllers.next_deadline()
            wait = None if due is None else max(due - self.clock(), 0.0)
            try:
                async with asyncio.timeout(wait):
                    await self._work.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(delay)

    def _step(self) -> bool:
        try:
            return self.controllers.step(self.clock())
        except Exception as error:  # a bug; the other controllers continue
            self.server.problems.append(f"a controller failed: {error!r}")
            return True

    # -- using

    @property
    def url(self) -> str:
        """The URL of the API server; "" before it is started."""
        return self._url

    def token_for(self, user: ApiUser) -> str:
        """A new token that the server accepts for a user as long as it runs."""
        token = secrets.token_hex(16)
        self.handlers.access.authenticator.add(token, user)
        return token

    def kubeconfig(self, token: str | None = None) -> str:
        """The text of a kubeconfig file for this cluster: the administrator's, or that of another token's owner."""
        token = token or self._token
        user: Document = {"token": token} if token else {}
        cluster = {"server": self._url}
        if self.certificate:
            cluster["certificate-authority-data"] = base64.b64encode(self.certificate).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "stowplan", "cluster": cluster}],
            "users": [{"name": "stowplan", "user": user}],
            "contexts": [{"name": "stowplan", "context": {"cluster": "stowplan", "user": "stowplan"}}],
            "current-context": "stowplan",
            "extensions": [{"name": MARK, "extension": {"id": self.id}}],
        }
        return yaml_text.dump(document)

    def load(self, paths: Iterable[str | Path]) -> LoadedManifests:
        """Load manifests or dumps from files and folders."""
        return manifests.load(self.api, paths, self.clock())

    @property
    def problems(self) -> list[str]:
        """Internal errors of the server and the controllers. Each one is a bug."""
        return self.server.problems
