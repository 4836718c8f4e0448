"""The files of a sweep on a machine that does not have them: they go along, and are put where the run looks for them.

All paths of a sweep start at its folder. A machine without the same files there makes a folder of its own for a run,
with the same tree in it: `/home/al/shop/cluster.yaml` becomes `/tmp/…/home/al/shop/cluster.yaml`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from stowplan.apps.sweep.sweep_inputs import SweepInputs, digest

QUICK = 1  # level of compression


def packed(inputs: SweepInputs) -> dict[str, bytes]:
    """Return the contents of all files, compressed."""
    return {name: zlib.compress(Path(inputs.folder, name).read_bytes(), QUICK) for name in inputs.files}


@contextmanager
def placed(inputs: SweepInputs, contents: Mapping[str, bytes]) -> Iterator[SweepInputs]:
    """Yield the inputs as a run of this machine finds them: where they are, or in a folder that is removed then."""
    if Path(inputs.folder).is_dir() and all(
        digest(Path(inputs.folder, name)) == expected for name, expected in inputs.files.items()
    ):
        yield inputs
        return
    with TemporaryDirectory(prefix="stowplan-sweep-") as root:
        folder = _inside(root, inputs.folder)
        folder.mkdir(parents=True)
        for name, data in contents.items():
            file = _inside(root, os.path.join(inputs.folder, name))  # noqa: PTH118  # normpath needs a text
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(zlib.decompress(data))
        yield msgspec.structs.replace(inputs, folder=str(folder))


def _inside(root: str, path: str) -> Path:
    return Path(root) / Path(os.path.normpath(path)).relative_to("/")
