"""Small packages of Debian, wheels and trees, made in memory."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping

LINK, HARD_LINK = "link to ", "hard link to "


def tar(files: Mapping[str, str | int]) -> bytes:
    """A tar file of texts by path. A number is a folder with that mode; `link to …` is a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for path, content in files.items():
            info, text = tarfile.TarInfo(f"./{path}"), ""
            info.uid, info.mtime, info.mode = 1000, 1234, 0o4775  # none of it counts
            if isinstance(content, int):
                info.type, info.mode = tarfile.DIRTYPE, content
            elif content.startswith(LINK):
                info.type, info.linkname = tarfile.SYMTYPE, content.removeprefix(LINK)
            elif content.startswith(HARD_LINK):
                info.type, info.linkname = tarfile.LNKTYPE, content.removeprefix(HARD_LINK)
            else:
                text = content
                info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def package(control: str, files: Mapping[str, str | int]) -> bytes:
    whole = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n", "control.tar.xz": tar({"control": control}), "data.tar.xz": tar(files)}
    for name, data in members.items():
        whole += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return whole


def wheel(name: str, version: str, files: Mapping[str, str], metadata: str = "") -> bytes:
    info = f"{name}-{version}.dist-info"
    written = {**files, f"{info}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{metadata}"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in written.items():
            archive.writestr(path, text)
    return buffer.getvalue()
