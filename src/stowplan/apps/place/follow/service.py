"""`stowplan place follow`: keeps a workload in exactly the clusters that a Placement has.

    hub ─► choice (`decisions`) ─► who does what (`rollout`) ─► one task for each cluster (`member_cluster`)

`Program` has the life cycle. Each cluster has a task of its own: one that does not answer delays no other, and is tried
again with backoff. A cluster that is in order is looked at again after the resync interval: what somebody changed or
deleted there is brought back. The manifest and the folder of kubeconfigs are read again when they change.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click
import msgspec

from stowplan.apps import program
from stowplan.apps.logging import Log
from stowplan.apps.place.follow import decisions, manifest
from stowplan.apps.place.follow.kubeconfigs import Kubeconfigs
from stowplan.apps.place.follow.member_task import MemberTask
from stowplan.apps.place.follow.metrics import FollowMetrics
from stowplan.apps.place.follow.options import FollowOptions
from stowplan.apps.place.follow.rollout import Duty, Rollout
from stowplan.apps.program import Program
from stowplan.kube import credentials
from stowplan.kube.resources import RESOURCES
from stowplan.objects.errors import StowplanError
from stowplan.objects.placements import Placement, PlacementDecision

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer

HUB = "the hub"
CHECK_EVERY = 1.0  # seconds between two looks at the files and the clock
SYNC_WITHIN = 30.0  # seconds until a single round gives up on a hub that does not answer
CHECK_DEFINITIONS_EVERY = 3.0  # seconds
NAMED_ONE_BY_ONE = "a file of --clusters-dir may not name a program; use --cluster {}=FILE"
HUB_CONNECTIONS, MEMBER_CONNECTIONS = 4, 2


class FollowService(Program):
    def __init__(self, options: FollowOptions, log: Log | None = None) -> None:
        super().__init__(
            log or Log(options.v, options.logging_format), election=None if options.single else options.election
        )
        self.options, self.metrics = options, FollowMetrics()
        self.sync_within = SYNC_WITHIN if options.single else None
        self._fingerprint = manifest.fingerprint(options.files)
        self.manifest = manifest.read(options.files)
        self.kinds = dict.fromkeys(manifest.kinds_of(self.manifest.objects))  # of all manifests so far
        self.rollout = Rollout(options.hold)
        self.members: dict[str, MemberTask] = {}
        self._kubeconfigs = Kubeconfigs(options.clusters, options.clusters_dir)
        self._refused: dict[str, str] = {}  # the last error, by what could not be read
        self._changed, self._may_write = asyncio.Event(), False
        self._alive_at = time.monotonic()
        self._unknown: set[str] = set()

    # -- the life cycle

    def access(self, kubeconfig: str = "") -> credentials.Access:
        return credentials.load(kubeconfig or self.options.kubeconfig or None, self.options.context or None)

    async def prepare(self) -> None:
        self._hub = self.open_client(self.access(), HUB_CONNECTIONS)
        self._read_kubeconfigs(at_start=True)

    def start(self) -> None:
        placement = msgspec.structs.replace(RESOURCES["Placement"], fields=f"metadata.name={self.options.placement}")
        for resource in (placement, RESOURCES["PlacementDecision"]):
            self.follow(
                self._hub,
                resource,
                lambda _: self._changed.set(),
                server=HUB,
                namespace=self.options.namespace,
                recheck_after=CHECK_DEFINITIONS_EVERY,
            )

    def server(self) -> HttpServer | None:
        if self.options.single or not (self.options.secure_port or self.options.plain_port):
            return None
        from stowplan.apps import http_server  # aiohttp takes longer to import than all the rest
        from stowplan.apps.engine_pages import program_pages

        pages = program_pages(self, lambda: time.monotonic() - self._alive_at, self.metrics.text)
        pages.readiness["definitions"] = lambda: "" if self.served else "the hub does not serve Placements"
        return http_server.server_of(pages, self.options, self.client_of, self.log.warning)

    def caches_synced(self) -> None:
        self.log.info("Caches are synced", placement=self.options.key, clusters=", ".join(sorted(self.members)))

    def leading_begins(self) -> None:
        self._may_write = True
        self._changed.set()

    async def work(self) -> int:
        """Follow until the program is stopped; or one round."""
        return await self.unless_stopped(self._once() if self.options.single else self._follow()) or 0

    async def _follow(self) -> int:
        while True:
            self._alive_at = time.monotonic()
            self._changed.clear()
            self._read_kubeconfigs()
            self._read_manifest()
            self._read_hub()
            self._show()
            if self._may_write:
                self._start_members()
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await self._changed.wait()

    async def _once(self) -> int:
        self._read_hub()
        if self.options.dry_run:
            return max([await self._print_plan(name) for name in sorted(self.members)], default=0)
        for duty in (Duty.HAVE, Duty.LOSE):
            now = time.monotonic()
            due = [member for name, member in self.members.items() if self.rollout.duty(name, now) is duty]
            await asyncio.gather(*(member.turn() for member in due))
        now, choice = time.monotonic(), self.rollout.choice
        waiting = [name for name in self.members if self.rollout.duty(name, now) is Duty.WAIT]
        return 1 if waiting or self.failing or choice.clusters - self.members.keys() or not choice.final else 0

    async def _print_plan(self, name: str) -> int:
        """Print what would be written to a cluster, even if it would have to wait."""
        duty = Duty.HAVE if name in self.rollout.choice.clusters else Duty.LOSE
        try:
            plan = await self.members[name].plan(duty) if duty is Duty.HAVE or self.rollout.choice.final else []
        except StowplanError as error:
            click.echo(f"{name}: {error}", err=True)
            return 1
        for line in plan or ("nothing to do",):
            click.echo(f"{name}: {line}")
        return 0

    # -- how it stands

    @property
    def served(self) -> bool:
        """True if the hub serves the kinds that we read."""
        return bool(self.reflectors) and all(each.served for each in self.reflectors.values())

    @property
    def failing(self) -> list[str]:
        return [name for name, member in self.members.items() if member.problem]

    def _show(self) -> None:
        choice = self.rollout.choice
        self.metrics.reflector_gauges.read(self.reflectors)
        self.metrics.show(
            chosen=len(choice.clusters),
            settled=len(self.rollout.settled),
            failing=len(self.failing),
            final=choice.final,
            leading=self.leading,
        )

    # -- what is read

    def _read_hub(self) -> None:
        objects = {kind: each.cache.objects for kind, each in self.reflectors.items()}
        placement = objects["Placement"].get(self.options.key)
        own = [
            each
            for each in objects["PlacementDecision"].values()
            if isinstance(each, PlacementDecision) and each.placement == self.options.key
        ]
        found = decisions.choice(
            placement if isinstance(placement, Placement) else None, own, self.rollout.choice, served=self.served
        )
        before = self.rollout.choice
        if not self.rollout.choose(found, time.monotonic()):
            return
        if found.clusters != before.clusters:
            self.log.info("The Placement has these clusters", clusters=", ".join(sorted(found.clusters)) or "none")
        if found.why and found.why != before.why:
            self.log.warning("Nothing is removed from any cluster", reason=found.why)
        self._warn_of_unknown()
        self.wake_members()

    def _warn_of_unknown(self) -> None:
        unknown = set(self.rollout.choice.clusters - self.members.keys())
        for name in sorted(unknown - self._unknown):
            remedy = "give --cluster, or put a file of that name into --clusters-dir"
            self.log.warning("There is no kubeconfig of a cluster that was chosen", cluster=name, remedy=remedy)
        self._unknown = unknown

    def _read_manifest(self) -> None:
        seen, self._fingerprint = self._fingerprint, manifest.fingerprint(self.options.files)
        if self._fingerprint == seen:
            return
        try:
            found = manifest.read(self.options.files)
        except StowplanError as error:
            self._refuse("manifest", str(error))
            return
        self._refused.pop("manifest", None)
        if found.digest != self.manifest.digest:
            self.manifest = found
            self.kinds |= dict.fromkeys(manifest.kinds_of(found.objects))
            self.rollout.forget()
            self.log.info("The manifest has changed", objects=len(found.objects))
            self.wake_members()

    def _read_kubeconfigs(self, *, at_start: bool = False) -> None:
        found = self._kubeconfigs.found()
        for name in self.members.keys() - found.keys():
            self.members.pop(name).end()
            self.log.warning("The kubeconfig of a cluster is gone; what is there stays", cluster=name)
        for name, (file, digest) in found.items():
            member = self.members.get(name)
            if member is not None and member.digest == digest:
                continue
            try:
                access = credentials.load(
                    str(file), instead_of_exec="" if name in self.options.clusters else NAMED_ONE_BY_ONE.format(name)
                )
            except StowplanError as error:
                if at_start and name in self.options.clusters:
                    raise
                self._refuse(str(file), str(error))
                continue
            self._refused.pop(str(file), None)
            if member is not None:
                member.end()
            client = self.open_client(access, MEMBER_CONNECTIONS)
            self.members[name] = MemberTask(name, self, client, access.namespace, digest)

    def _refuse(self, what: str, why: str) -> None:
        if self._refused.get(what) != why:
            self._refused[what] = why
            self.log.error("A file cannot be used; what was read before stays in force", problem=why)

    # -- the clusters

    def _start_members(self) -> None:
        for member in self.members.values():
            if not member.started:
                member.started = True
                self.start_task(member.run())

    def wake_members(self) -> None:
        for member in self.members.values():
            member.wake.set()


def run(options: FollowOptions) -> int:
    """Follow the Placement until a signal stops it, or for one round. Return the exit code."""
    return program.run(lambda: FollowService(options))
