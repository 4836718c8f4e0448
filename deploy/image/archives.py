"""Read packages of Debian and wheels into a tree.

A .deb is an `ar` archive with two tar files: `control.tar` says what it is, `data.tar` has the files. A wheel is a zip
file whose files go beside each other, but for those in NAME.data.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
import zipfile
from collections.abc import Iterator

from deploy.image.tree import Tree

MAGIC, HEADER = b"!<arch>\n", 60
# Debian's / has links for these since its release 12; packages of that release still name the old folders.
MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class ArchiveError(Exception):
    """An archive is not what its name says."""


def members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the members of an `ar` archive."""
    if not data.startswith(MAGIC):
        raise ArchiveError("not an ar archive")
    at = len(MAGIC)
    while at + HEADER <= len(data):
        name, size = data[at : at + 16].decode("ascii").strip().rstrip("/"), int(data[at + 48 : at + 58])
        at += HEADER
        yield name, data[at : at + size]
        at += size + size % 2


def part(data: bytes, name: str) -> tarfile.TarFile:
    for member, content in members(data):
        if member.startswith(f"{name}.tar"):
            return tarfile.open(fileobj=io.BytesIO(content))
    raise ArchiveError(f"a package without {name}.tar")


def control(data: bytes) -> dict[str, str]:
    """Return what a package says of itself: the files of its control.tar by name."""
    with part(data, "control") as archive:
        found = {}
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                found[posixpath.normpath(member.name)] = file.read().decode("utf-8")
    return found


def unpack_package(data: bytes, tree: Tree) -> None:
    with part(data, "data") as archive:
        for member in archive:
            path = moved(posixpath.normpath(member.name))
            if path in (".", *MERGED.values()) or path in MERGED:
                continue
            if member.isdir():
                tree.folder(path)
            elif member.issym():
                tree.link(path, member.linkname)
            elif member.islnk():
                tree.put(path, tree.entries[moved(posixpath.normpath(member.linkname))])
            elif member.isfile():
                file = archive.extractfile(member)
                assert file is not None
                tree.file(path, file.read(), program=bool(member.mode & 0o100))
            else:
                raise ArchiveError(f"{member.name}: neither a file, a link nor a folder")


def moved(path: str) -> str:
    top, slash, rest = path.partition("/")
    return f"{MERGED[top]}{slash}{rest}" if top in MERGED else path


def unpack_wheel(data: bytes, folder: str, tree: Tree) -> None:
    """Put the files of a wheel into a folder. Its scripts are left out: the image has one program."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            path = member.filename
            top, _, rest = path.partition("/")
            if top.endswith(".data"):
                scheme, _, path = rest.partition("/")
                if scheme not in ("purelib", "platlib"):
                    continue
            tree.file(posixpath.join(folder, path), archive.read(member))


def metadata_of(data: bytes) -> str:
    """Return what a wheel says of itself."""
    return information(data, "METADATA").decode("utf-8")


def record_of(data: bytes) -> bytes:
    """Return a wheel's list of its files."""
    return information(data, "RECORD")


def information(data: bytes, wanted: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            folder, _, file = name.partition("/")
            if folder.endswith(".dist-info") and file == wanted:
                return archive.read(name)
    raise ArchiveError(f"a wheel without {wanted}")
