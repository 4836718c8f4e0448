"""Files with plugins: where they may be, and how they are imported.

Whoever can write such a file runs code in the scheduler. So a configuration cannot choose the place: the program is
told which folders may have code, and a name in a configuration is searched for there. What counts is where the file
really is: a link, or `..` in a name, does not lead out of the folders. (A mounted ConfigMap is a folder of links that
stay inside: `mine.py` → `..data/mine.py`.)

A file that is imported already, by a test for example, is not imported a second time: there would be two classes of
each kind in it, and objects of the one would be unknown to a plugin that reads the other.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from stowplan.objects.errors import ConfigError

OWN_NAME = "stowplan_plugin_"  # what the names of modules that are loaded here start with


def found(source: str, folders: Sequence[Path], near: Path) -> tuple[Path, Path]:
    """Return the file that `source` names, and the folder that it was found in.

    `near` is the configuration's own folder: if the file is there, the error says that this folder can be named.
    """
    folder_of_it = str(near) if (near / source).is_file() else "FOLDER, the folder of the file"
    if not folders:
        problem = f"{source} is a file, and no folder is named that code may come from"
        raise ConfigError(problem, remedy=f"give --plugin-path {folder_of_it}")
    allowed = ", ".join(str(folder.resolve()) for folder in folders)
    outside = None
    for folder in folders:
        file = (folder / source).resolve()  # an absolute path stays what it is
        if not file.is_file():
            continue
        if file.is_relative_to(folder.resolve()):
            return file, folder
        outside = outside or file
    if outside is not None:
        problem = f"{source} is {outside}, and code may only come from {allowed}"
        raise ConfigError(problem, remedy=f"give --plugin-path {outside.parent}, or move the file")
    problem = f"there is no file {source} in {allowed}, where code may come from"
    raise ConfigError(problem, remedy=f"give --plugin-path {folder_of_it}, or correct the path")


def load(file: Path) -> ModuleType:
    """Import a file under a name of its own; if it is imported already, return that module."""
    module = _imported(file)
    if module is not None:
        return module
    words, digest = re.sub(r"\W", "_", str(file)), zlib.crc32(str(file).encode())  # x-y.py is not x_y.py
    module_name = f"{OWN_NAME}{words}_{digest:08x}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None and spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]  # half a module is of no use to the next one who asks
        raise
    return module


def _imported(file: Path) -> ModuleType | None:
    """Return the module that was imported from this file; rather one that somebody else imported than our own."""
    wanted = str(file.resolve())
    found = [
        (name.startswith(OWN_NAME), module)
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and _file_of(module) == wanted
    ]
    return min(found, key=lambda each: each[0])[1] if found else None


def _file_of(module: ModuleType) -> str | None:
    file = vars(module).get("__file__")
    return str(Path(file).resolve()) if isinstance(file, str) else None
