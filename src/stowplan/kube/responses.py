"""What a server said, or that it said nothing.

    StowplanError
    └── WireError
        ├── UnreachableError        no answer: refused, broken off, too late, or nothing like HTTP or JSON
        │   └── ExecPluginError     no credentials to ask with (in exec_plugin.py)
        ├── RefusedError            an answer other than the one hoped for; carries status and what the server said
        └── StoppedError            we may no longer write, so nothing was sent

An answer is a value (`Response`) for whoever wants to look at its status, and an error only where nothing can go
on without success (`Response.checked`).
"""

from __future__ import annotations

import msgspec

from stowplan.objects.errors import StowplanError

LONGEST_EXCERPT = 200


class WireError(StowplanError):
    """Something between us and a server went wrong."""


class UnreachableError(WireError):
    """No answer; whether the request was carried out is not known, unless `unsent` says that it was not."""

    def __init__(self, text: str, *, unsent: bool = False) -> None:
        super().__init__(text)
        self.unsent = unsent


class RefusedError(WireError):
    """The server answered, and not with success."""

    def __init__(self, what: str, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{what}: {status} {message}".rstrip())
        self.status, self.message, self.retry_after = status, message, retry_after


class StoppedError(WireError):
    """Not sent: somebody else leads now."""


class Status(msgspec.Struct):
    """The document that Kubernetes puts into an answer that is not an object."""

    message: str = ""
    reason: str = ""
    code: int = 0


_status = msgspec.json.Decoder(Status)


def read_status(document: bytes | msgspec.Raw) -> Status:
    """The Status in a body; a body of another sort (a proxy's page, say) becomes its message."""
    try:
        return _status.decode(document)
    except msgspec.DecodeError:
        return Status(message=bytes(document[:LONGEST_EXCERPT]).decode(errors="replace").strip())


class Response(msgspec.Struct):
    """A whole answer. `maybe_applied`: an earlier try of the same request may have been carried out already."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    maybe_applied: bool = False

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """What the server said, if it is not an object."""
        return "" if self.ok else read_status(self.body).message

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server wants to be left alone for. (Kubernetes gives seconds, never a date.)"""
        text = self.header(b"retry-after")
        return float(text) if text.isdigit() else None

    def checked(self, what: str) -> Response:
        """This answer if it is a success; `what` was asked for otherwise opens the error's text."""
        if self.ok:
            return self
        raise RefusedError(what, self.status, self.message, retry_after=self.retry_after)
