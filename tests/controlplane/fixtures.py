"""Control planes that live as long as the test session; with several workers each has control planes of its own.

`pytest --kubernetes 1.35 tests/controlplane` runs the tests of the main version against another server.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.plane import ControlPlane
from tests.embedded.running import EmbeddedCluster, served
from tests.started_planes import note_start


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The version that we are true to, or the one that `--kubernetes` names."""
    yield from running(build.by_minor(request.config.getoption("--kubernetes")), request.config)


@pytest.fixture(scope="session")
def plane_137(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The one after."""
    yield from running(build.NEXT, request.config)


@pytest.fixture(scope="session")
def embedded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """The cluster in a process, with the real kubectl."""
    with served() as found:
        yield EmbeddedCluster(found, kubectl(request.config), tmp_path_factory.mktemp("embedded"))


def kubectl(config: pytest.Config) -> Path:
    """The one that goes with the version that we are true to, or else whichever is there."""
    try:
        return build.programs(build.MAIN, teller(config))["kubectl"]
    except build.CannotBuildError as reason:
        found = shutil.which("kubectl")
        if found is None:
            pytest.skip(f"no kubectl: {reason}")
        return Path(found)


def running(
    version: str, config: pytest.Config, *, pod_groups: bool = False, benchmark: bool = False
) -> Iterator[ControlPlane]:
    try:
        made = ControlPlane(version, pod_groups=pod_groups, benchmark=benchmark, tell=teller(config))
    except build.CannotBuildError as reason:
        pytest.skip(f"no control plane of Kubernetes {version}: {reason}")
    with made as plane:
        note_start(config, version)
        yield plane


@contextmanager
def on_server(named: str, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane by the name of its fixture, or one of that version for this block alone.

    Idle control planes take a gigabyte and some CPU each, so those of few tests do not stay for the session.
    """
    if named in build.VERSIONS:
        yield from running(named, request.config)
    else:
        yield request.getfixturevalue(named)


def teller(config: pytest.Config) -> build.Tell:
    """Shows a line at once: a build takes minutes, and pytest keeps back what tests print."""
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")  # a worker of xdist has none

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            if terminal is None:
                build.to_stderr(line)
            else:
                terminal.ensure_newline()
                terminal.write_line(line)

    return tell
