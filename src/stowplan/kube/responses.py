"""Responses of a server, and the errors of a request.

    StowplanError
    └── WireError
        ├── UnreachableError        no response: connection refused or broken, timeout, invalid HTTP or JSON, a page of
        │   │                       somebody in between
        │   └── ExecPluginError     no credentials (in exec_plugin.py)
        ├── RefusedError            a response without success; carries its status and message
        └── StoppedError            writing is no longer allowed, so nothing was sent

A `Response` is a value for callers that check its status. `Response.checked` raises an error for callers that need
success. A success of an API server is a Kubernetes object, in JSON with its kind (`Response.strangeness`). Anything
else does not come from the API server: the login page of a network has status 200, too.
"""

from __future__ import annotations

import re

import msgspec

from stowplan.objects import json_text
from stowplan.objects.errors import StowplanError

LONGEST_EXCERPT = 200
LONGEST_RETRY_AFTER = 3.0  # seconds; a server that asks for a day is asked again all the same


class WireError(StowplanError):
    """A request failed."""


class UnreachableError(WireError):
    """There is no response. Unless `unsent` is set, the request may have been carried out."""

    def __init__(self, text: str, *, unsent: bool = False) -> None:
        super().__init__(text)
        self.unsent = unsent


class RefusedError(WireError):
    """The server responded, but not with success."""

    def __init__(self, what: str, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{what}: {status} {message}".rstrip())
        self.status, self.message, self.retry_after = status, message, retry_after


class StoppedError(WireError):
    """Not sent, because this process may no longer write."""


class Status(msgspec.Struct):
    """The document in a response that is not an object."""

    message: str = ""
    reason: str = ""
    code: int = 0


class _Kind(msgspec.Struct):
    kind: str = ""


_status = msgspec.json.Decoder(Status)
_kind = msgspec.json.Decoder(_Kind)
_MANAGED_FIELDS = b'"managedFields":['
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]]', re.DOTALL)
_JSON_HEADER = (b"Content-Type", b"application/json")
_KIND_FIRST = b'{"kind":"'  # how API servers begin an object of a built-in kind


def read_status(document: bytes | msgspec.Raw) -> Status:
    """The Status in a body. Any other body (the page of a proxy, for example) becomes its message."""
    try:
        return _status.decode(document)
    except Exception:  # no JSON, or one that no decoder can read
        return Status(message=bytes(document[:LONGEST_EXCERPT]).decode(errors="replace").strip())


def is_text(data: bytes) -> bool:
    """Whether this is UTF-8 outside of managedFields. An API server sends nothing else, so no object is to blame.

    The names in managedFields are passed on as somebody sent them, with whatever bytes they have, and nobody here reads
    them.
    """
    if data.isascii():  # in no time
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        rest = _without_managed_fields(data)
        return len(rest) < len(data) and is_text(rest)
    return True


def _without_managed_fields(data: bytes) -> bytes:
    """(Within a text of JSON the quotes are escaped, so nobody can imitate the beginning.)"""
    kept, at = [], 0
    while (begin := data.find(_MANAGED_FIELDS, at)) >= 0:
        end = _end_of_list(data, begin + len(_MANAGED_FIELDS))
        kept.append(data[at:begin])
        at = end
    return b"".join((*kept, data[at:]))


def _end_of_list(data: bytes, begin: int) -> int:
    """Return where a list ends whose bracket is open at `begin`; the end of the data if it does not end."""
    depth = 1
    for token in _BRACKETS.finditer(data, begin):
        found = token[0]
        depth += found == b"["
        depth -= found == b"]"
        if not depth:
            return token.end()
    return len(data)


def _kind_of(body: bytes) -> str:
    """The kind of an object or of a list; "" if there is none. One object of a list may nest too deep for a decoder."""
    try:
        return _kind.decode(body).kind
    except Exception:
        try:
            return _kind.decode(json_text.readable(body)).kind
        except Exception:
            return ""


class Response(msgspec.Struct):
    """A whole response. `maybe_applied`: an earlier attempt of the same request may have been carried out."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    maybe_applied: bool = False

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """The message of the server; "" for a success."""
        return "" if self.ok else read_status(self.body).message

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before the next attempt, three at most. (Kubernetes sends seconds: a date is no answer.)"""
        text = self.header(b"retry-after").strip()
        return min(float(text), LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else None

    @property
    def is_json(self) -> bool:
        if _JSON_HEADER in self.headers:  # as API servers write it
            return True
        return self.header(b"content-type").lower().startswith("application/json")

    def strangeness(self) -> str:
        """Why this success is none of an API server; "" for a Kubernetes object."""
        if not self.is_json:
            found = self.header(b"content-type") or "no content type"
            return f"the answer is no Kubernetes object: found {found[:60]}, expected application/json"
        if not is_text(self.body):
            return "the answer was damaged on its way: it is not UTF-8 text"
        if self.body.startswith(_KIND_FIRST):
            return ""
        return "" if _kind_of(self.body) else "the answer is no Kubernetes object: found JSON without a kind"

    def checked(self, what: str) -> Response:
        """This response if it is a success. Otherwise raises `RefusedError`, with `what` at the start of its text."""
        if self.ok:
            return self
        raise RefusedError(what, self.status, self.message, retry_after=self.retry_after)
