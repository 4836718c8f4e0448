"""The image's root filesystem (deploy/rootfs.sh) at work in a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import flags
from tests.controlplane.deployed import configuration, flags_for, running
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.deploy import rootfs

pytestmark = [pytest.mark.controlplane, pytest.mark.full]


def test_the_image_schedules(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """Under the name kube-scheduler, in a read-only root filesystem, as a user without rights."""
    if reason := rootfs.why_not():
        pytest.skip(reason)
    settings, port = tmp_path / "settings", flags.free_port()
    settings.mkdir(mode=0o755)
    arguments = flags_for(plane, settings, configuration(), port, seen=Path("/etc/stowplan"))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"schedulerName": "stowplan", "containers": [{"name": "c", "image": "pause"}]}
    with rootfs.assembled(tmp_path / "root") as root, plane.nodes(1) as (node,):
        path, *more = rootfs.command(root, ["/bin/kube-scheduler", *arguments], {"/etc/stowplan": settings})
        with running(plane, Path(path), more, tmp_path / "log", port) as scheduler:
            assert f"Uid:\t{rootfs.NONROOT}" in Path(f"/proc/{scheduler.program.pid}/status").read_text()
            plane.api().must("POST", pods, {"metadata": {"name": "first"}, "spec": spec})
            bound = lambda: plane.api().must("GET", f"{pods}/first")["spec"].get("nodeName") == node  # noqa: E731
            until("it is bound", bound, explain=scheduler.program.tail)
