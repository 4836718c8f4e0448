"""What a request wants to do: a verb on a resource, or on a path that is none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = ("status", "finalize")


class AccessRequest(msgspec.Struct, frozen=True):
    """`path` is "" for a resource. Without a namespace it is about the whole cluster."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def refusal(self, user: str) -> str:
        """Why a user is refused, in the words of Kubernetes."""
        if self.path:
            return _sanitized(f"User {_quoted(user)} cannot {self.verb} path {_quoted(self.path)}")
        where = f"in the namespace {_quoted(self.namespace)}" if self.namespace else "at the cluster scope"
        what = f"resource {_quoted(self.full_resource)} in API group {_quoted(self.group)}"
        return _sanitized(f"User {_quoted(user)} cannot {self.verb} {what} {where}")


def of_http(method: str, path: str, query: Mapping[str, str]) -> AccessRequest:
    """What an HTTP request wants to do."""
    parts = path.strip("/").split("/")
    start = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    if len(parts) <= start:
        return AccessRequest(method.lower(), path=path or "/")
    group, rest, namespace = parts[1] if start == 3 else "", parts[start:], ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    resource, name, subresource = (*rest[:3], "", "")[:3]
    verb = _VERBS.get(method, "")
    if not name and verb == "get":
        verb = "list" if query.get("watch", "false") in ("false", "0") else "watch"
        name = _selected_name(query.get("fieldSelector", ""))
    elif not name and verb == "delete":
        verb = "deletecollection"
    return AccessRequest(verb, group, resource, subresource, name, namespace)


def _selected_name(selector: str) -> str:
    """The name of the only object that a field selector can select; "" if it can select others."""
    for part in selector.split(","):
        field, found, value = part.replace("==", "=").partition("=")
        if field == "metadata.name" and found:
            return value
    return ""


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _sanitized(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
