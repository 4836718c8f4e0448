"""kube-scheduler's lease: whether kube-scheduler holds it, and whether this program may.

    profile for default-scheduler   may update that lease   the program's lease   nobody leads while a Stowplan renews
    yes                             yes                     kube-scheduler        stowplan
    yes                             no                      stowplan              kube-scheduler
    no                              (not asked)             stowplan              kube-scheduler

Every Kubernetes lets the user of kube-scheduler hold that lease; older ones let it hold no other. The account of
deploy/rbac.yaml may hold `stowplan` alone. So rights decide, unless `--replace`, a flag or the file names the lease.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import msgspec

from stowplan.apps.leader_election import KUBE_SCHEDULER, ElectionSettings, is_stowplan
from stowplan.apps.profile_loader import OWN_NAME
from stowplan.kube.client import Client
from stowplan.kube.resources import LEASES, ApiResource

LEASE_NAME = KUBE_SCHEDULER
LEASE_KEY = f"kube-system/{LEASE_NAME}"
LEASE_PAIR = {LEASE_NAME: OWN_NAME, OWN_NAME: LEASE_NAME}
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


async def may_take_lease(client: Client, namespace: str, warn: Callable[[str], None]) -> bool:
    """Return whether this user may update kube-scheduler's lease."""
    wanted = {"group": LEASES.group, "resource": LEASES.plural, "namespace": namespace, "name": LEASE_NAME}
    body = {
        "apiVersion": f"{OWN_ACCESS.group}/v1",
        "kind": OWN_ACCESS.kind,
        "spec": {"resourceAttributes": {**wanted, "verb": "update"}},
    }
    answer = await client.create(OWN_ACCESS, "", body)
    if not answer.ok:
        warn(f"Cannot see whether the lease {LEASE_NAME} may be updated: {answer.status} {answer.message}")
        return False
    try:
        return msgspec.json.decode(answer.body, type=_OwnAccess).status.allowed
    except msgspec.MsgspecError as error:
        warn(f"Cannot see whether the lease {LEASE_NAME} may be updated: the answer cannot be read: {error}")
        return False
