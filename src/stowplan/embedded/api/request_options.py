"""How a request is to be carried out, apart from what it is about: when, how strictly, for real or as a trial."""

from __future__ import annotations

import msgspec

from stowplan.embedded.errors import ApiError, bad_patch, bad_request


class RequestOptions(msgspec.Struct):
    """`warnings` grows while the request is carried out; a client sees them as headers."""

    now: float
    validation: str = "Warn"  # what to do about unknown fields: Ignore, Warn or Strict
    dry_run: bool = False
    patch: str = ""  # what a refusal of a patched object shows
    warnings: list[str] = msgspec.field(default_factory=list)

    def bad_patch(self, why: str) -> ApiError:
        return bad_patch(f"Invalid value: {_quoted(self.patch)}: {why}")

    def found_unknown(self, kind: str, version: str, fields: list[str]) -> None:
        """Fields that the kind does not have."""
        told = [f'unknown field "{field}"' for field in sorted(fields)]
        if self.validation == "Strict" and told and self.patch:
            raise self.bad_patch(f"strict decoding error: {', '.join(told)}")
        if self.validation == "Strict" and told:
            prefix = f'{kind} in version "{version}" cannot be handled as a {kind}'
            raise bad_request(f"{prefix}: strict decoding error: {', '.join(told)}")
        if self.validation == "Warn":
            self.warnings += told


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class DeleteOptions(msgspec.Struct, rename="camel"):
    """What may stand in the body of a DELETE, or in its query."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None
    dry_run: list[str] | None = None
