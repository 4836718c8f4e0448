"""Compiles our modules before anything is measured, as pip does when it installs them.

Where Python may not write bytecode (PYTHONDONTWRITEBYTECODE) each start would compile 290 modules, which takes as long
as importing them. A program that is installed has them compiled.
"""

from __future__ import annotations

import compileall
from pathlib import Path

import stowplan


def compile_all() -> None:
    """Compile what has changed since the last time."""
    compileall.compile_dir(Path(stowplan.__file__).parent, quiet=1)
