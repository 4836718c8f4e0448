"""The options of a request: its time, field validation, dry run."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.embedded.authorization.users import ApiUser
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, bad_patch, bad_request


class RequestOptions(msgspec.Struct):
    """Warnings are collected while the request is carried out. A client gets them as headers."""

    now: float
    validation: str = "Warn"  # of unknown fields: Ignore, Warn or Strict
    dry_run: bool = False
    patch: str = ""  # the patch, for the error message of an object that it made invalid
    manager: str = ""  # the field manager; "" for the controllers of this process
    user: ApiUser | None = None  # who asks; None for the controllers of this process
    given_owners: Any = None  # `managedFields` that the client sent
    owners: list[Document] | None = None  # `managedFields` to store
    warnings: list[str] = msgspec.field(default_factory=list)

    def bad_patch(self, why: str) -> ApiError:
        return bad_patch(f"Invalid value: {_quoted(self.patch)}: {why}")

    def report_unknown(self, kind: str, version: str, fields: list[str]) -> None:
        """Warn about fields that the kind does not have, or refuse the request."""
        problems = [f'unknown field "{field}"' for field in sorted(fields)]
        if self.validation == "Strict" and problems and self.patch:
            raise self.bad_patch(f"strict decoding error: {', '.join(problems)}")
        if self.validation == "Strict" and problems:
            prefix = f'{kind} in version "{version}" cannot be handled as a {kind}'
            raise bad_request(f"{prefix}: strict decoding error: {', '.join(problems)}")
        if self.validation == "Warn":
            self.warnings += problems


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class DeleteOptions(msgspec.Struct, rename="camel"):
    """The options of a DELETE, from its body or its query."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None
    dry_run: list[str] | None = None
