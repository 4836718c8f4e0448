"""Secrets are left out: of documents by the names of their fields, and of every text by how secrets look.

What is left out becomes `<left out>`, so that it shows that there was something. A name decides for a whole part of a
document. A field that names a file (`tokenFile`) or a Secret (`secretName`) stays. Comments of YAML are never copied.
"""

from __future__ import annotations

import json
import re
from typing import Any

LEFT_OUT = "<left out>"
_WORDS = "|".join(
    (
        "pass(?:word|wd|phrase)", "secret", "token", "credential", "api[-_]?key", "access[-_]?key", "private[-_]?key",
        "authorization", "cookie",
    )
)  # fmt: skip
_SECRET_NAME = re.compile(rf"{_WORDS}|bearer|(?:key|cert|certificate|ca|kubeconfig)[-_]?data", re.IGNORECASE)
_ONLY_NAMES = re.compile(r"(?:file|path|name|namespace|ref|review|reviews|url|ttl|seconds|audience)$", re.IGNORECASE)
_VALUE = r"""(?:=|\\?["']?:\s*)\\?["']?(?P<value>[^\s"'&,;}\\]+)"""
# As text: what a name says, and what looks like a secret whatever it is called.
_TEXTS = (
    re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL),
    re.compile(r"\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?"),  # a token of a service account
    re.compile(r"(?<=Bearer )[^\s\"',]+|(?<=Basic )[A-Za-z0-9+/=]{6,}", re.IGNORECASE),
    re.compile(r"(?<=://)[^/\s:@\"']*:[^/\s@\"']+(?=@)"),  # user:password@host
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[abprs]-[\w-]{10,}"),
    re.compile(rf"(?:{_WORDS})[\w-]*(?<!file)(?<!name)(?<!path){_VALUE}", re.IGNORECASE),
)


class Redaction:
    """`count`: how many values and texts were left out."""

    def __init__(self) -> None:
        self.count = 0

    def document(self, found: Any) -> Any:
        """Return the same document of objects, lists and plain values without secrets."""
        if isinstance(found, dict):
            return {self.text(str(name)): self._field(str(name), value) for name, value in found.items()}
        if isinstance(found, list | tuple):
            return [self.document(each) for each in found]
        return self.text(found) if isinstance(found, str) else found

    def _field(self, name: str, value: Any) -> Any:
        if _SECRET_NAME.search(name) and not _ONLY_NAMES.search(name):
            return self._emptied(value)
        return self.document(value)

    def _emptied(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._emptied(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._emptied(each) for each in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        self.count += 1
        return LEFT_OUT

    def text(self, found: str) -> str:
        """Return the same text without what looks like a secret."""
        for pattern in _TEXTS:
            found = pattern.sub(self._without, found)
        return found

    def _without(self, match: re.Match[str]) -> str:
        value = match.groupdict().get("value")
        if value is not None and value.startswith(LEFT_OUT[:5]):
            return match[0]
        self.count += 1
        return LEFT_OUT if value is None else match[0][: match.start("value") - match.start()] + LEFT_OUT

    def json(self, found: bytes) -> bytes:
        """Return the same JSON document without secrets; what is no JSON as a text."""
        try:
            document = json.loads(found)
        except (ValueError, RecursionError):
            return self.text(found.decode(errors="replace")).encode()
        return json.dumps(self.document(document), indent=2).encode() + b"\n"

    def json_lines(self, found: bytes) -> bytes:
        """Return lines of JSON without secrets; a line that is none as a text."""
        return b"".join(self._line(line) + b"\n" for line in found.splitlines() if line)

    def _line(self, line: bytes) -> bytes:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return self.text(line.decode(errors="replace")).encode()
        return json.dumps(self.document(document), separators=(",", ":")).encode()
