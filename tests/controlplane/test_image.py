"""The image at work in a real cluster: started by runc, and where there is no runtime, in its root filesystem alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from deploy.image import build

from tests.controlplane import flags
from tests.controlplane.deployed import configuration, flags_for, running
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.deploy import rootfs
from tests.image import runtime

pytestmark = [pytest.mark.controlplane, pytest.mark.full]
Command = Callable[[Sequence[str], Mapping[str, Path]], list[str]]


@contextmanager
def by_runc(folder: Path) -> Iterator[Command]:
    if reason := runtime.why_not():
        pytest.skip(reason)
    image = build.image(folder / "image", [build.machine()], [], list[str]().append)
    with runtime.bundle(image.folder, folder / "bundle") as bundle:
        yield bundle.command


@contextmanager
def in_its_root(folder: Path) -> Iterator[Command]:
    with rootfs.provided(folder) as root:
        yield lambda words, mounts: rootfs.command(root, words, mounts)


def users(program: str, port: int) -> set[str]:
    """The users of the processes that run a program with a port in its arguments."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text().split("\0")
            if program in words[:4] and any(str(port) in word for word in words):
                found.add((folder / "status").read_text().partition("Uid:\t")[2].partition("\t")[0])
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.parametrize("started", [by_runc, in_its_root])
def test_the_image_schedules(
    started: Callable[[Path], AbstractContextManager[Command]], plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Under the name kube-scheduler, in a read-only root filesystem, as a user without rights."""
    settings, port = tmp_path / "settings", flags.free_port()
    settings.mkdir(mode=0o755)
    arguments = flags_for(plane, settings, configuration(), port, seen=Path("/etc/stowplan"))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"schedulerName": "stowplan", "containers": [{"name": "c", "image": "pause"}]}
    with started(tmp_path) as command, plane.nodes(1) as (node,):
        path, *more = command(["/bin/kube-scheduler", *arguments], {"/etc/stowplan": settings})
        with running(plane, Path(path), more, tmp_path / "log", port) as scheduler:
            plane.api().must("POST", pods, {"metadata": {"name": "first"}, "spec": spec})
            bound = lambda: plane.api().must("GET", f"{pods}/first")["spec"].get("nodeName") == node  # noqa: E731
            until("it is bound", bound, explain=scheduler.program.tail)
            assert users("/bin/kube-scheduler", port) == {str(rootfs.NONROOT)}
