"""Responses of a server, and the errors of a request.

    StowplanError
    └── WireError
        ├── UnreachableError        no response: connection refused or broken, timeout, invalid HTTP or JSON
        │   └── ExecPluginError     no credentials (in exec_plugin.py)
        ├── RefusedError            a response without success; carries its status and message
        └── StoppedError            writing is no longer allowed, so nothing was sent

A `Response` is a value for callers that check its status. `Response.checked` raises an error for callers that need
success.
"""

from __future__ import annotations

import msgspec

from stowplan.objects.errors import StowplanError

LONGEST_EXCERPT = 200


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


_status = msgspec.json.Decoder(Status)


def read_status(document: bytes | msgspec.Raw) -> Status:
    """The Status in a body. Any other body (the page of a proxy, for example) becomes its message."""
    try:
        return _status.decode(document)
    except Exception:  # no JSON, or one that no decoder can read
        return Status(message=bytes(document[:LONGEST_EXCERPT]).decode(errors="replace").strip())


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
        """Seconds to wait before the next attempt. (Kubernetes sends seconds, never a date.)"""
        text = self.header(b"retry-after")
        return float(text) if text.isdigit() else None

    def checked(self, what: str) -> Response:
        """This response if it is a success. Otherwise raises `RefusedError`, with `what` at the start of its text."""
        if self.ok:
            return self
        raise RefusedError(what, self.status, self.message, retry_after=self.retry_after)
