"""What is in a bundle: files by their names, and what should be in it and is not."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import sys
import tarfile
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from stowplan.apps.bundle.redaction import Redaction
from stowplan.apps.bundle.served_pages import PageAccess, answers
from stowplan.apps.followed_version import KUBERNETES
from stowplan.kube import credentials
from stowplan.kube.responses import WireError
from stowplan.kube.transport import Transport
from stowplan.objects import bounded_yaml, yaml_text
from stowplan.objects.errors import StowplanError

MOST_OF_DECISIONS = 20 << 20  # bytes of a decision log, from its end
MOST_OF_LOG = 10 << 20
LEASES = ("stowplan", "kube-scheduler", "stowplan-placement")
_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"


class Contents:
    def __init__(self, now: datetime | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self.problems: list[str] = []
        self.redaction = Redaction()
        self._now = now or datetime.now(UTC)

    def add_versions(self) -> None:
        needed = metadata.requires("stowplan") or []
        names = sorted({re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed if "extra ==" not in each})
        found = {
            "stowplan": metadata.version("stowplan"),
            "asKubeScheduler": KUBERNETES,
            "python": sys.version.split()[0],
            "implementation": platform.python_implementation(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "libraries": {name: _version(name) for name in names},
        }
        self._put_json("versions.json", found)

    def add_configuration(self, file: Path) -> None:
        """A configuration as data: comments are left out, and what is no YAML is left out as a whole."""
        try:
            documents = bounded_yaml.load_all(file.read_text(encoding="utf-8"))
            texts = [yaml_text.dump(self.redaction.document(each)) for each in documents]
        except (OSError, ValueError, StowplanError) as error:
            self.problems.append(f"{file}: {self.redaction.text(str(error))}")
            return
        self._put(f"configuration/{file.name}", "---\n".join(texts).encode())

    def add_pages(self, url: str, access: PageAccess) -> None:
        parts = urlsplit(url)
        folder = f"pages/{parts.hostname}_{parts.port or (443 if parts.scheme == 'https' else 80)}"
        for answer in answers(url, access):
            if answer.problem:
                self.problems.append(self.redaction.text(answer.problem))
            elif answer.file.endswith(".json"):
                self._put(f"{folder}/{answer.file}", self.redaction.json(answer.body))
            else:
                text = self.redaction.text(answer.body.decode(errors="replace"))
                self._put(f"{folder}/{answer.file}", text.encode())

    def add_decisions(self, file: Path) -> None:
        """The log with the file before it, as far as the room goes."""
        before = file.with_name(f"{file.name}.1")
        latest = self._end_of(file, MOST_OF_DECISIONS)
        if latest is None:
            return
        room = MOST_OF_DECISIONS - len(latest)
        earlier = (self._end_of(before, room) or b"") if room and before.exists() else b""
        self._put("decisions.jsonl", self.redaction.json_lines(earlier + latest))

    def add_log(self, file: Path) -> None:
        found = self._end_of(file, MOST_OF_LOG)
        if found is not None:
            self._put(f"log/{file.name}", self.redaction.text(found.decode(errors="replace")).encode())

    async def add_cluster(self, kubeconfig: str, context: str) -> None:
        """The server's version, and who holds the leases."""
        try:
            transport = Transport(credentials.load(kubeconfig or None, context or None))
        except StowplanError as error:
            self.problems.append(self.redaction.text(f"the cluster: {error}"))
            return
        try:
            paths = {"version": "/version", **{f"lease-{name}": _PATH + name for name in LEASES}}
            for name, path in paths.items():
                answer = await transport.request("GET", path)
                if answer.status == 200:
                    self._put(f"cluster/{name}.json", self.redaction.json(bytes(answer.body)))
                elif answer.status != 404:
                    self.problems.append(f"the cluster: {path}: {answer.status}")
        except WireError as error:
            self.problems.append(self.redaction.text(f"the cluster: {error}"))
        finally:
            await transport.close()

    def archive(self) -> bytes:
        """A gzipped tar file, with a list of the files and of the problems at its head."""
        listed = {name: {"bytes": len(body), "sha256": _digest(body)} for name, body in self.files.items()}
        about = {
            "created": self._now.isoformat(timespec="seconds"), "files": listed, "problems": self.problems,
            "leftOut": self.redaction.count,
        }  # fmt: skip
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for name, body in {"bundle.json": msgspec.json.format(_encoded(about)), **self.files}.items():
                entry = tarfile.TarInfo(f"stowplan-bundle/{name}")
                entry.size, entry.mtime, entry.mode = len(body), int(self._now.timestamp()), 0o600
                archive.addfile(entry, io.BytesIO(body))
        return stream.getvalue()

    # -- files

    def _put_json(self, name: str, document: Any) -> None:
        self._put(name, self.redaction.json(_encoded(document)))

    def _put(self, name: str, body: bytes) -> None:
        whole, number = name, 1
        while whole in self.files:  # two configurations of the same name, say
            number += 1
            stem, dot, ending = name.rpartition(".")
            whole = f"{stem or ending}-{number}{dot}{ending if stem else ''}"
        self.files[whole] = body

    def _end_of(self, file: Path, most: int) -> bytes | None:
        """The last lines of a file, whole ones."""
        try:
            with file.open("rb") as stream:
                size = stream.seek(0, io.SEEK_END)
                stream.seek(max(size - most, 0))
                found = stream.read(most)
        except OSError as error:
            self.problems.append(f"{file}: {error.strerror}")
            return None
        return found if size <= most else found.partition(b"\n")[2]


def _encoded(document: Any) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
