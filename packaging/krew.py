"""The archive and the manifest of `kubectl stowplan` for krew, in a folder.

    python packaging/krew.py WHEEL FOLDER [--uri URI]

WHEEL is Stowplan's (`pip wheel --no-deps .`). FOLDER gets kubectl-stowplan-VERSION.tar.gz, and stowplan.yaml, the
manifest with the archive's checksum. The same wheel gives the same bytes. --uri: where the archive will be, if not at
the release.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LAUNCHER = "kubectl-stowplan"
BORN = 315_532_800  # 1980: the time of all files, as in wheels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--uri", help="the address of the archive in the manifest")
    options = parser.parse_args()
    named = re.fullmatch(r"stowplan-([^-]+)-py3-none-any\.whl", options.wheel.name)
    if named is None or not options.wheel.is_file():
        sys.stderr.write(f"{options.wheel} is no wheel of Stowplan (stowplan-VERSION-py3-none-any.whl)\n")
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    content = archive(options.wheel)
    file = options.folder / f"{LAUNCHER}-{named[1]}.tar.gz"
    file.write_bytes(content)
    manifest(options.folder / "stowplan.yaml", named[1], hashlib.sha256(content).hexdigest(), options.uri)
    sys.stdout.write(f"{file}\n{options.folder / 'stowplan.yaml'}\n")
    return 0


def archive(wheel: Path) -> bytes:
    """What krew unpacks: the launcher, the wheel, the versions of libraries, the licence."""
    files = (HERE / "krew" / LAUNCHER, wheel, ROOT / "constraints.txt", ROOT / "LICENSE")
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for file in files:
            about = tarfile.TarInfo(file.name)
            about.size, about.mtime = file.stat().st_size, BORN
            about.mode = 0o755 if file.name == LAUNCHER else 0o644
            with file.open("rb") as content:
                tar.addfile(about, content)
    return out.getvalue()


def manifest(file: Path, version: str, checksum: str, uri: str | None) -> None:
    text = (HERE / "krew" / "stowplan.yaml").read_text(encoding="utf-8")
    text = text.partition("apiVersion:")[1] + text.partition("apiVersion:")[2]  # without the comment for us
    if uri:
        text = re.sub(r"uri: .*", lambda _: f"uri: {uri}", text)
    file.write_text(text.replace("@VERSION@", version).replace("@SHA256@", checksum), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
