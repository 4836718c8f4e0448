"""A systemd unit's command as a child process, on a machine whose /etc and /usr/local/bin have further files.

The unit, and the files that it names, stay as they are: the process has a mount namespace of its own, in which a folder
lies over those two. Only the address and the port are others: nothing listens outside of the loopback.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.controlplane import flags
from tests.controlplane.deployed import Deployed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program
from tests.deploy import unit_files

COVERED = ("/etc", "/usr/local/bin")
PROGRAM = "#!{}\nfrom stowplan.apps.cli import kube_scheduler\n\nkube_scheduler()\n"  # as pip writes it


class Machine:
    """A folder with files by their paths; those below /etc/kubernetes may be edited while programs run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for path in (*COVERED, "/etc/kubernetes", "/etc/sysconfig"):
            self.path(path).mkdir(parents=True, exist_ok=True)
        self.put("/usr/local/bin/kube-scheduler", PROGRAM.format(sys.executable))
        self.path("/usr/local/bin/kube-scheduler").chmod(0o755)

    def path(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def put(self, path: str, text: str) -> None:
        other = self.path(f"{path}.new")
        other.write_text(text, encoding="utf-8")
        other.replace(self.path(path))

    def start(self, plane: ControlPlane, unit: str, name: str) -> Deployed:
        """Start the unit's command; its pages are on another port."""
        port = flags.free_port()
        environment: dict[str, str] = {}
        for each in unit_files.settings(unit)["EnvironmentFile"]:
            file = self.path(each.removeprefix("-"))
            if file.exists():
                environment |= unit_files.environment(file.read_text(encoding="utf-8"))
        addresses = {
            "--bind-address=0.0.0.0": f"--bind-address={flags.LOOPBACK}",
            "--secure-port=10259": f"--secure-port={port}",
        }
        words = [addresses.get(word, word) for word in unit_files.command(unit, environment)]
        assert {*addresses.values()} < {*words}
        path, *arguments = self._inside(words)
        return Deployed(plane, Program(Path(path), arguments, plane.folder / f"{name}.log"), port)

    def _inside(self, words: list[str]) -> list[str]:
        """The command in a mount namespace. What is edited must be mounted by itself: an overlay may not see it."""
        script = [f"mount -t overlay overlay -o lowerdir={self.path(each)}:{each} {each}" for each in COVERED]
        script.append(f"mount --bind {self.path('/etc/kubernetes')} /etc/kubernetes")
        return [_unshare(), "--mount", "sh", "-euc", "\n".join((*script, f"exec {shlex.join(words)}"))]


def _unshare() -> str:
    return shutil.which("unshare") or "unshare"


@cache
def why_not() -> str:
    """Why this machine cannot do that; empty if it can."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("unshare"):
        return "only root on Linux has mount namespaces"
    command = [_unshare(), "--mount", "sh", "-euc", "mount -t overlay overlay -o lowerdir=/tmp:/etc /etc"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"no overlay in a mount namespace: {done.stderr.strip()}"
