"""`--of NAMESPACE/NAME`: the decisions of a Stowplan in the cluster, with the rights of the kubeconfig.

    kubectl port-forward ─► the scheduler's secure port ─► GET /debug/decisions with the kubeconfig's token ─► the feed

kubectl makes the way: the API server and the kubelet carry the connection into the pod, so its certificate, which the
scheduler makes for itself, needs no check. The scheduler asks the API server whose token that is and which pods its
owner may list, so the feed never has more than kubectl would show.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from stowplan.apps.explain.sources import LEASES
from stowplan.apps.ui.feed import DecisionFeed
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.kube.responses import WireError
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError
from stowplan.objects.leases import Lease

PORT = 10259
PATH = "/debug/decisions"
FORWARDED = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+) -> ")
READY_WITHIN, SILENCE, PAUSE = 30.0, 60.0, 3.0  # seconds
LARGEST_LINE = 1 << 20
LATEST = 253_402_300_799  # the last second of the year 9999: later moments have no date


class SchedulerFeed:
    """Run `run` as a task. `left_out`: of how many namespaces the decisions are not shown."""

    def __init__(self, of: str, kubeconfig: str, context: str, feed: DecisionFeed) -> None:
        self.namespace, _, self.name = of.partition("/")
        if not self.namespace or not self.name or "/" in self.name:
            raise ConfigError(f"--of {of!r}", remedy="expected NAMESPACE/NAME of a pod or a Deployment")
        self._kubeconfig, self._context, self._feed = kubeconfig, context, feed
        self.left_out = 0
        self.problem = "is not reached yet"

    @property
    def notes(self) -> list[str]:
        """What a reader of the pages should know."""
        found = [f"Scheduler {self.namespace}/{self.name} {self.problem}."] if self.problem else []
        if self.left_out:
            what = "a namespace" if self.left_out == 1 else f"{self.left_out} namespaces"
            found.append(f"Decisions in {what} are left out: you may not list the pods there.")
        return found

    async def run(self, client: Client) -> None:
        """Follow the scheduler until cancelled; after a problem again, with whoever leads then."""
        while True:
            try:
                pod = await leader(client, self.namespace, self.name)
                async with forwarded(self._flags(), self.namespace, pod) as port:
                    await self._follow(port)
            except (WireError, ConfigError, OSError, TimeoutError) as error:
                self.problem = f"cannot be followed: {str(error) or type(error).__name__}"
            await asyncio.sleep(PAUSE)

    async def _follow(self, port: int) -> None:
        access = credentials.load(
            self._kubeconfig or None, self._context or None, forwarded=f"https://127.0.0.1:{port}"
        )
        transport = Transport(access, connections=1, may_write=lambda: False)
        try:
            async with transport.stream(PATH, timeout=READY_WITHIN) as stream:
                self.problem, rest = "", b""
                while data := await stream.read(SILENCE):
                    *lines, rest = (rest + data).split(b"\n")
                    if len(rest) > LARGEST_LINE:
                        raise WireError("the scheduler sends a line without end")
                    for line in filter(None, lines):
                        self._take(line)
            self.problem = "has ended the connection"
        finally:
            await transport.close()

    def _take(self, line: bytes) -> None:
        try:
            found: Any = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return
        if not isinstance(found, dict):
            return
        if found.get("event") == "leftOut":
            left_out = found.get("namespaces")
            self.left_out = left_out if isinstance(left_out, int) else 0
        else:
            at = found.get("at")
            known = isinstance(at, int | float) and 0 <= at < LATEST
            self._feed.reported(found, at if known else None)

    def _flags(self) -> Sequence[str]:
        return (
            *(("--kubeconfig", self._kubeconfig) if self._kubeconfig else ()),
            *(("--context", self._context) if self._context else ()),
        )


async def leader(client: Client, namespace: str, name: str) -> str:
    """Return the pod of this name, or of the Deployment of this name the one that leads."""
    pods, found = RESOURCES["Pod"], list[str]()
    if (await client.get(pods, f"{namespace}/{name}")).ok:
        return name
    async for page in client.list_pages(pods, namespace=namespace):
        names = (pods.decode(bytes(item)).name for item in page.items or ())
        found += [each for each in names if re.fullmatch(rf"{re.escape(name)}-[a-z0-9]+(-[a-z0-9]+)?", each)]
    if not found:
        remedy = "name a pod or a Deployment of Stowplan in the cluster, as NAMESPACE/NAME"
        raise ConfigError(f"there is no pod {namespace}/{name}, and no Deployment with pods", remedy=remedy)
    holders: list[str] = []
    with suppress(WireError):
        async for page in client.list_pages(LEASES):
            leases = (LEASES.decode(bytes(item)) for item in page.items or ())
            holders += [each.spec.holder_identity or "" for each in leases if isinstance(each, Lease)]
    return next((each for each in found if any(each in holder for holder in holders)), found[0])


@asynccontextmanager
async def forwarded(
    flags: Sequence[str], namespace: str, pod: str, which: Callable[[str], str | None] = shutil.which
) -> AsyncGenerator[int, None]:
    """Let kubectl forward a port of ours to the scheduler's; yield ours."""
    kubectl = which("kubectl")
    if kubectl is None:
        raise ConfigError("kubectl is not there", remedy="install it: --of reaches the scheduler by its port-forward")
    process = await asyncio.create_subprocess_exec(
        kubectl, *flags, "port-forward", "--namespace", namespace, "--address", "127.0.0.1", f"pod/{pod}", f":{PORT}",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        async with asyncio.timeout(READY_WITHIN):
            while line := await process.stdout.readline():
                if match := FORWARDED.match(line):
                    break
            else:
                said = (await process.stderr.read(2000)).decode("utf-8", "replace").strip()
                raise WireError(f"kubectl port-forward ended: {said}")
        draining = asyncio.ensure_future(_drained(process.stdout))
        try:
            yield int(match[1])
        finally:
            draining.cancel()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _drained(output: asyncio.StreamReader) -> None:
    """kubectl tells of each connection: nobody reads that, and it must not wait for a reader."""
    while await output.read(4096):
        pass
