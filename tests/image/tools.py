"""Programs that judge what we make: built from their Go modules at pinned versions, once, with Go's checksums."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.controlplane.build import Module, build_one, cache, go_environment, locked, to_stderr

ACTIONLINT = Module("actionlint", "github.com/rhysd/actionlint", "1.7.12", "cmd/actionlint")
CRANE = Module("crane", "github.com/google/go-containerregistry", "0.22.1", "cmd/crane")


def why_not(module: Module) -> str:
    """Why a program cannot be had; empty if it can."""
    return "" if module.is_built(module.name) or shutil.which("go") else f"no Go to build {module.name} with"


def program(module: Module) -> Path:
    if not module.is_built(module.name):
        # A lock of our own: nobody who waits for a control plane waits for this.
        with locked(to_stderr, cache() / "tools", module.name), go_environment() as environment:
            if not module.is_built(module.name):
                build_one(module.name, module, environment)
    return module.folder / module.name
