"""An image as files: layers, manifests and an index, named by their SHA-256, as the OCI image layout says.

oci-layout
index.json               one entry, the index of the image
blobs/sha256/…           the index, a manifest and a configuration for each architecture, the layers
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.image.contents import NONROOT
from deploy.image.tree import Entry, Tree

TYPE = "application/vnd.oci.image"
TITLE, STORY = "Stowplan", "A Kubernetes scheduler whose policies are Python"
LEVEL = 6  # 9 takes three times as long, and saves one percent
Descriptor = dict[str, Any]


@dataclass(frozen=True)
class Layer:
    data: bytes  # compressed
    difference: str  # the SHA-256 of what was compressed
    made_by: str


def layer(tree: Tree, date: int, made_by: str, cache: Path) -> Layer:
    """Return a tree as a compressed tar file: in the order of the paths, all with one time and one owner.

    Compressing takes longer than all the rest, so the result is kept, by the hash of what was compressed.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(tree.entries):
            entry = tree.entries[path]
            archive.addfile(header(path, entry, date), io.BytesIO(entry.data) if entry.data is not None else None)
    plain = buffer.getvalue()
    difference = hashlib.sha256(plain).hexdigest()
    kept = cache / f"{difference}-{LEVEL}-{zlib.ZLIB_RUNTIME_VERSION}.gz"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(gzip.compress(plain, LEVEL, mtime=0))
        part.replace(kept)
    return Layer(kept.read_bytes(), difference, made_by)


def header(path: str, entry: Entry, date: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.mode, info.mtime = entry.mode, date
    if entry.target:
        info.type, info.linkname = tarfile.SYMTYPE, entry.target
    elif entry.data is None:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(entry.data)
    return info


def unpacked(data: bytes) -> Tree:
    """Return the tree of a compressed layer."""
    tree = Tree()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            tree.put(member.name, Entry(member.mode, file.read() if file else None, member.linkname))
    return tree


# -- writing


def manifest(layers: Sequence[Layer], architecture: str, version: str, date: int, out: Path) -> Descriptor:
    """Write the layers, the configuration and the manifest of one architecture; return what an index says of it."""
    when = datetime.fromtimestamp(date, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = labels_of(version)
    configuration = {
        "created": when,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{NONROOT}:{NONROOT}",  # a number, so that the kubelet can check runAsNonRoot
            "ExposedPorts": {"10259/tcp": {}},
            "Env": ["PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "OPENBLAS_NUM_THREADS=1"],
            # No entry point: manifests of other schedulers have /bin/kube-scheduler as `command`, or first in `args`.
            "Cmd": ["/bin/stowplan", "run"],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.difference}" for each in layers]},
        "history": [{"created": when, "created_by": each.made_by} for each in layers],
    }
    document = {
        "schemaVersion": 2,
        "mediaType": f"{TYPE}.manifest.v1+json",
        "config": blob(encoded(configuration), f"{TYPE}.config.v1+json", out),
        "layers": [blob(each.data, f"{TYPE}.layer.v1.tar+gzip", out) for each in layers],
        "annotations": labels,
    }
    described = blob(encoded(document), f"{TYPE}.manifest.v1+json", out)
    return {**described, "platform": {"architecture": architecture, "os": "linux"}}


def labels_of(version: str) -> dict[str, str]:
    prefix = "org.opencontainers.image"
    said = {"title": TITLE, "description": STORY, "licenses": "Apache-2.0", "version": version}
    return {f"{prefix}.{name}": text for name, text in said.items()}


def index(manifests: Iterable[Descriptor], version: str, out: Path) -> str:
    """Write what makes the folder a layout; return the digest of the image."""
    document = {
        "schemaVersion": 2,
        "mediaType": f"{TYPE}.index.v1+json",
        "manifests": list(manifests),
        "annotations": labels_of(version),
    }
    described = blob(encoded(document), f"{TYPE}.index.v1+json", out)
    named = {**described, "annotations": {"org.opencontainers.image.ref.name": version}}
    top = {"schemaVersion": 2, "mediaType": f"{TYPE}.index.v1+json", "manifests": [named]}
    (out / "index.json").write_bytes(encoded(top))
    (out / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))
    return str(described["digest"])


def blob(data: bytes, kind: str, out: Path) -> Descriptor:
    digest = hashlib.sha256(data).hexdigest()
    folder = out / "blobs" / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / digest).write_bytes(data)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def archive(folder: Path, file: Path, date: int) -> None:
    """Write a layout as one tar file, as `podman load` and `skopeo copy oci-archive:…` read it."""
    tree = Tree()
    for each in sorted(folder.rglob("*")):
        if each.is_file():
            tree.file(each.relative_to(folder).as_posix(), each.read_bytes())
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as out:
        for path in sorted(tree.entries):
            entry = tree.entries[path]
            out.addfile(header(path, entry, date), io.BytesIO(entry.data) if entry.data is not None else None)


# -- reading


def read(folder: Path, digest: str) -> bytes:
    """Return a blob; one that is not what its name says is refused."""
    data = (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest.removeprefix("sha256:"):
        raise ValueError(f"{folder}: blob {digest} has other content")
    return data


def manifests(folder: Path) -> dict[str, Any]:
    """Return the manifest of each architecture in a layout."""
    top = json.loads((folder / "index.json").read_bytes())
    listed = json.loads(read(folder, top["manifests"][0]["digest"]))["manifests"]
    return {each["platform"]["architecture"]: json.loads(read(folder, each["digest"])) for each in listed}


def files(folder: Path, architecture: str) -> Tree:
    """Return all files of an image, layer over layer."""
    layers = manifests(folder)[architecture]["layers"]
    return Tree().plus(*(unpacked(read(folder, each["digest"])) for each in layers))


def compressed(manifest: Mapping[str, Any]) -> int:
    """Return how many bytes a node fetches."""
    return sum(each["size"] for each in (*manifest["layers"], manifest["config"]))
