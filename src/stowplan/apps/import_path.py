"""What a service may import: installed packages, and not by accident what lies in the current folder."""

from __future__ import annotations

import os
import sys


def leave_out_current_folder() -> None:
    """Take the current folder off the path of imports, if `python -m stowplan…` put it there.

    A configuration may name plugins of installed packages (`package.module:Class`). With `python -m` a file in the
    folder where the service happens to start would be such a package, too. What PYTHONPATH names stays.
    """
    started = getattr(sys.modules.get("__main__"), "__spec__", None)
    by_module = started is not None and started.name.partition(".")[0] == "stowplan"
    if by_module and not sys.flags.safe_path and sys.path and sys.path[0] in ("", _current_folder()):
        del sys.path[0]


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  as Python itself writes it
    except OSError:  # the folder is deleted
        return ""
