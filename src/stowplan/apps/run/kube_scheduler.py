"""kube-scheduler's lease: whether kube-scheduler holds it, and whether this program may.

    profile for default-scheduler   may update that lease   the program's lease   nobody leads while a Stowplan renews
    yes                             yes                     kube-scheduler        stowplan
    yes                             no                      stowplan              kube-scheduler
    no                              (not asked)             stowplan              kube-scheduler

Every Kubernetes lets the user of kube-scheduler hold that lease; older ones let it hold no other. The account of
deploy/rbac.yaml may hold `stowplan` alone. So rights decide, unless `--replace`, a flag or the file names the lease.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from stowplan.apps.leader_election import KUBE_SCHEDULER, ElectionSettings, is_stowplan
from stowplan.apps.profile_loader import OWN_NAME
from stowplan.kube.client import Client
from stowplan.kube.resources import LEASES, ApiResource
from stowplan.kube.responses import WireError
from stowplan.objects.errors import ConfigError

LEASE_NAME = KUBE_SCHEDULER
LEASE_KEY = f"kube-system/{LEASE_NAME}"
LEASE_PAIR = {LEASE_NAME: OWN_NAME, OWN_NAME: LEASE_NAME}
RIGHTS_WITHIN = 30.0  # seconds in which an API server must know its rules
RIGHTS_PAUSE = 1.0
OWN_ACCESS = ApiResource(
    "SelfSubjectAccessReview", "selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False
)


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def lease_holder(client: Client, now: float, warn: Callable[[str], None]) -> str:
    """Return the kube-scheduler that holds its lease; empty if the lease expired, is absent or may not be read.

    A Stowplan that holds the lease is no kube-scheduler.
    """
    answer = await client.get(LEASES, LEASE_KEY)
    if not answer.ok:
        if answer.status != 404:
            warn(f"Cannot see whether kube-scheduler serves: {answer.status} {answer.message}")
        return ""
    try:
        spec = msgspec.json.decode(answer.body, type=_Lease).spec
    except Exception as error:
        warn(f"Cannot see whether kube-scheduler serves: its lease cannot be read: {error}")
        return ""
    if not spec.holder_identity or spec.renew_time is None or is_stowplan(spec.holder_identity):
        return ""
    expires = spec.renew_time.timestamp() + (spec.lease_duration_seconds or 15)
    return spec.holder_identity if expires > now else ""


# -- the program's own lease


class _AccessGranted(msgspec.Struct):
    allowed: bool = False


class _OwnAccess(msgspec.Struct):
    status: _AccessGranted = msgspec.field(default_factory=_AccessGranted)


def paired(election: ElectionSettings) -> ElectionSettings:
    """Return the settings with the lease that no Stowplan may renew meanwhile, if there is one."""
    return replace(election, other=LEASE_PAIR.get(election.name, ""))


async def lease_by_rights(
    client: Client, namespace: str, warn: Callable[[str], None], *, within: float = RIGHTS_WITHIN
) -> str:
    """Return the name of the lease that this user may update: kube-scheduler's, or else our own.

    An API server that has just started refuses reviews, or has no rules yet and allows nothing. So it is asked again
    for some seconds. Raises ConfigError if the user may update neither.
    """
    deadline, told = time.monotonic() + within, ""
    while True:
        answers = {name: await _may_update(client, namespace, name) for name in (LEASE_NAME, OWN_NAME)}
        allowed = next((name for name, answer in answers.items() if answer.allowed), "")
        if allowed:
            return allowed
        problem = next((answer.problem for answer in answers.values() if answer.problem), "")
        if problem and problem != told:
            told = problem
            warn(f"Cannot see whether the lease {LEASE_NAME} may be updated: {problem}")
        if any(answer.final for answer in answers.values()):
            return OWN_NAME  # who may hold it without a review will do so
        if time.monotonic() > deadline:
            raise ConfigError(
                f"this user may update neither the lease {LEASE_NAME} nor {OWN_NAME} in {namespace}",
                remedy="apply deploy/rbac.yaml, or name a lease that the user may update: --leader-elect-resource-name",
            )
        await asyncio.sleep(RIGHTS_PAUSE)


@dataclass(frozen=True)
class _Review:
    """`final`: this user may not ask."""

    allowed: bool = False
    problem: str = ""
    final: bool = False


async def _may_update(client: Client, namespace: str, name: str) -> _Review:
    wanted = {"group": LEASES.group, "resource": LEASES.plural, "namespace": namespace, "name": name}
    body = {
        "apiVersion": f"{OWN_ACCESS.group}/v1",
        "kind": OWN_ACCESS.kind,
        "spec": {"resourceAttributes": {**wanted, "verb": "update"}},
    }
    try:
        answer = await client.create(OWN_ACCESS, "", body)
    except WireError as error:
        return _Review(problem=str(error))
    if not answer.ok:
        return _Review(problem=f"{answer.status} {answer.message}", final=answer.status in (403, 404))
    try:
        return _Review(msgspec.json.decode(answer.body, type=_OwnAccess).status.allowed)
    except msgspec.MsgspecError as error:
        return _Review(problem=f"the answer cannot be read: {error}", final=True)
