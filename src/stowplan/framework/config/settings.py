"""Settings of the whole scheduler: leader election, the connection to the API server, HTTP extenders.

The types serve for the file and for the program. As in kube-scheduler, an empty string or a zero means "not set" and
becomes the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from stowplan.framework.config.argument_types import Int64, Natural32
from stowplan.framework.config.arguments import qualified_name
from stowplan.framework.config.document import ConfigValue, Seconds, shown, under
from stowplan.objects.errors import ConfigError

S = TypeVar("S", bound=ConfigValue)


class LeaderElection(ConfigValue, frozen=True):
    """Leader election among several replicas; durations in seconds."""

    leader_elect: bool = True
    lease_duration: Seconds = Seconds(15)
    renew_deadline: Seconds = Seconds(10)
    retry_period: Seconds = Seconds(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(ConfigValue, frozen=True):
    """How to reach the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float | None = None  # None: not in the file (kube-scheduler's default is 50); below 0: no limit, as there
    burst: Natural32 = 100


class ManagedResource(ConfigValue, frozen=True):
    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLS(ConfigValue, frozen=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(ConfigValue, frozen=True):
    """A scheduler extender: an HTTP service that is called at some points."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLS | None = None
    http_timeout: Seconds = Seconds(5)
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


def completed(given: S) -> S:
    """Return the settings with defaults for fields that are missing, empty or zero."""
    blank = {
        field.name: field.default
        for field in msgspec.structs.fields(given)
        if field.type is not bool and getattr(given, field.name) in ("", 0)
    }
    return msgspec.structs.replace(given, **blank)


# --- what is invalid -------------------------------------------------------------------------------------------------


JITTER = 1.2  # a retry comes at most so many retryPeriods after the last one


def check_leader_election(given: LeaderElection, path: str = "leaderElection") -> None:
    """Raise an error for durations that cannot work. Nothing is checked if leader election is off."""
    if not given.leader_elect:
        return
    for field, value in (
        ("leaseDuration", given.lease_duration),
        ("renewDeadline", given.renew_deadline),
        ("retryPeriod", given.retry_period),
    ):
        if value <= 0:
            raise ConfigError(f"found {value:g}s, expected more than 0s", path=under(path, field))
    if given.lease_duration <= given.renew_deadline:
        problem = f"found {given.lease_duration:g}s, expected more than renewDeadline ({given.renew_deadline:g}s)"
        raise ConfigError(problem, path=under(path, "leaseDuration"))
    if int(given.lease_duration) <= given.renew_deadline:  # others read the number in the Lease
        problem = f"found {given.lease_duration:g}s, which a Lease has as {int(given.lease_duration)}s"
        remedy = f"write whole seconds, more than renewDeadline ({given.renew_deadline:g}s)"
        raise ConfigError(problem, path=under(path, "leaseDuration"), remedy=remedy)
    least = JITTER * given.retry_period
    if given.renew_deadline <= least:
        problem = f"found {given.renew_deadline:g}s, expected more than {JITTER:g} times retryPeriod ({least:g}s)"
        raise ConfigError(problem, path=under(path, "renewDeadline"))
    if given.resource_lock != "leases":
        problem = f'found {shown(given.resource_lock)}, expected "leases"'
        raise ConfigError(problem, path=under(path, "resourceLock"))


def check_extenders(extenders: Sequence[Extender], path: str = "extenders") -> None:
    """Raise an error for an extender that is invalid, or that conflicts with another one."""
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        _check_extender(extender, f"{path}[{i}]")
        for j, resource in enumerate(extender.managed_resources):
            where = f"{path}[{i}].managedResources[{j}].name"
            _check_extended_resource(resource.name, where)
            if resource.name in managed:
                raise ConfigError(f"{shown(resource.name)} is managed twice", path=where)
            managed.add(resource.name)
    binders = [i for i, extender in enumerate(extenders) if extender.bind_verb]
    if len(binders) > 1:
        problem = f"extenders[{binders[0]}] binds already, and only one extender may"
        raise ConfigError(problem, path=f"{path}[{binders[1]}].bindVerb")


def _check_extender(extender: Extender, path: str) -> None:
    if extender.prioritize_verb and extender.weight <= 0:
        problem = f"found {extender.weight}, expected an integer >= 1 because there is a prioritizeVerb"
        raise ConfigError(problem, path=under(path, "weight"))
    tls = extender.tls_config
    if tls and tls.insecure and (tls.ca_file or tls.ca_data):
        problem = "found true beside a CA, which then would not be used"
        raise ConfigError(problem, path=under(path, "tlsConfig.insecure"), remedy="remove one of the two")


def _check_extended_resource(name: str, path: str) -> None:
    qualified_name(name, path)
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        raise ConfigError(f"found {shown(name)}, expected an extended resource such as example.com/gpu", path=path)
