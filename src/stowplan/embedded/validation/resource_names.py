"""The names of resources: those that Kubernetes knows, and those of others, which have a domain ("example.com/gpu")."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.errors import StatusCause, invalid_value
from stowplan.embedded.validation.metadata import check_label_key
from stowplan.objects import quantity

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
COUNTED = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_OF_PODS = (f"{kind}{name}" for kind in ("", "requests.", "limits.") for name in _COMPUTE)
_OF_QUOTAS = frozenset((*COUNTED, *_OF_PODS, "requests.storage"))
_KNOWN = _OF_QUOTAS | {"storage"}
_HUGE_PAGES, _REQUESTED_HUGE_PAGES = "hugepages-", "requests.hugepages-"
_DEFAULT_DOMAIN = "kubernetes.io/"


def check(name: str, field: str) -> Iterator[StatusCause]:
    """A name of any resource."""
    problems = list(check_label_key(field, name))
    if not problems and "/" not in name and not _is_known(name):
        problems = [invalid_value(field, name, "must be a standard resource type or fully qualified")]
    yield from problems


def check_in_quota(name: str, field: str) -> Iterator[StatusCause]:
    """A name of a resource that a quota limits."""
    yield from check(name, field)
    if "/" not in name and not is_of_quotas(name):
        yield invalid_value(field, name, "must be a standard resource for quota")


def check_of_container(name: str, field: str) -> Iterator[StatusCause]:
    """A name of a resource that a container asks for."""
    yield from check(name, field)
    if "/" not in name and name not in _COMPUTE and not name.startswith(_HUGE_PAGES):
        yield invalid_value(field, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid_value(field, name, "doesn't follow extended resource name standard")


def check_amount(name: str, amount: str, field: str) -> Iterator[StatusCause]:
    """An amount is not negative, and a whole number if its resource is counted."""
    nanos = quantity.nanos(amount)
    if nanos < 0:
        yield invalid_value(field, amount, "must be greater than or equal to 0")
    if (name in COUNTED or is_extended(name)) and nanos % quantity.NANO:
        yield invalid_value(field, amount, "must be an integer")


def _is_known(name: str) -> bool:
    return name in _KNOWN or name.startswith((_HUGE_PAGES, _REQUESTED_HUGE_PAGES))


def is_of_quotas(name: str) -> bool:
    return name in _OF_QUOTAS or name.startswith((_HUGE_PAGES, _REQUESTED_HUGE_PAGES))


def is_native(name: str) -> bool:
    """True for the resources of Kubernetes itself."""
    return "/" not in name or _DEFAULT_DOMAIN in name


def is_extended(name: str) -> bool:
    """True for a resource of others that pods can ask for."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not any(check_label_key("", f"requests.{name}"))


def may_exceed_its_request(name: str) -> bool:
    """True if the limit of a resource may be larger than the request."""
    return is_native(name) and not name.startswith(_HUGE_PAGES)
