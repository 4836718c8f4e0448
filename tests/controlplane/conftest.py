"""Control planes that live as long as the test session. The line in the summary that says what ran against them is
in `tests/conftest.py`; with several workers each has control planes of its own, so nobody disturbs anybody.

Tests of what users do ask for `cluster`: they run against the embedded cluster and against a real control plane.

Without Go and without ready-made programs these tests are skipped, and the summary says so. With Go there is no way
around them: what is missing is built, and a build that fails is a failure.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import note_start
from tests.controlplane import build
from tests.controlplane.cluster import Cluster
from tests.controlplane.place_process import Hub
from tests.controlplane.plane import ControlPlane
from tests.controlplane.served_hub import ServedHub, a_served_hub, with_three_clusters
from tests.embedded.running import EmbeddedCluster, served

EVERYWHERE = [
    pytest.param("embedded", id="embedded"),
    pytest.param("plane", id="on Kubernetes 1.36", marks=pytest.mark.controlplane),
]
REAL_AT_LENGTH = [  # on the real one, too, but in the long run: what is slow there, and shown there by a shorter test
    EVERYWHERE[0],
    pytest.param("plane", id="on Kubernetes 1.36", marks=[pytest.mark.controlplane, pytest.mark.full]),
]
MOSTLY_REAL = [  # the real one is what counts; the embedded one has its turn in the long run
    pytest.param("embedded", id="embedded", marks=pytest.mark.full),
    EVERYWHERE[1],
]
# Slow, and shown in `make test` by another variant of the same test: these have their turn in the long run.
AT_LENGTH = (
    ("test_faults.py", "[embedded-"),
    ("test_faults.py", "than_the_lease[embedded]"),
    ("test_seed_sp_priority.py", "as_a_profile-on Kubernetes 1.36-killed"),
    ("test_seed_sp_priority.py", "embedded-killed"),
    ("test_placement_faults.py", "slices[on Kubernetes 1.36-short]"),
    ("test_flavours.py", "ends_at_10_per_node[embedded]"),
    ("test_kubenexus_profile.py", "test_a_spark_application[embedded]"),
    ("test_explain.py", "agree[embedded]"),
)


@pytest.hookimpl(tryfirst=True)  # before anybody is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(f"/{file}::" in item.nodeid and part in item.nodeid for file, part in AT_LENGTH):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The version that we are true to."""
    yield from running(build.MAIN, request.config)


@pytest.fixture(scope="session")
def plane_137(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The one after."""
    yield from running(build.NEXT, request.config)


@pytest.fixture(
    params=[
        pytest.param("plane", id="on Kubernetes 1.36"),
        pytest.param("plane_137", id="on Kubernetes 1.37", marks=pytest.mark.full),  # built only for `make test-full`
    ]
)
def each_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """One after the other."""
    found: ControlPlane = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def embedded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """The cluster in a process, with the real kubectl."""
    with served() as found:
        yield EmbeddedCluster(found, kubectl(request.config), tmp_path_factory.mktemp("embedded"))


@pytest.fixture(params=EVERYWHERE)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The embedded cluster and the real one, for tests that must not find a difference."""
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace of the test's `cluster`, or else of `plane`; for another plane use its method of this name."""
    cluster: Cluster = request.getfixturevalue("cluster" if "cluster" in request.fixturenames else "plane")
    cluster.check()
    with cluster.namespace() as name:
        yield name
    cluster.check()


@pytest.fixture(scope="module", params=REAL_AT_LENGTH)
def served_hub(request: pytest.FixtureRequest) -> Iterator[ServedHub]:
    """A hub where `stowplan place` decides for the tests of a file."""
    log = request.module.__name__.rpartition(".")[2]
    with a_served_hub(request.getfixturevalue(request.param), log) as found:
        yield found


@pytest.fixture
def hub(served_hub: ServedHub) -> Iterator[Hub]:
    """A fresh namespace of `served_hub`. Files that need another hub have their own fixture of this name."""
    with served_hub.namespace() as found:
        yield found


@pytest.fixture
def three(hub: Hub) -> Hub:
    """`hub` with three clusters of different size."""
    return with_three_clusters(hub)


def kubectl(config: pytest.Config) -> Path:
    """The one that goes with the version that we are true to, or else whichever is there."""
    try:
        return build.programs(build.MAIN, teller(config))["kubectl"]
    except build.CannotBuildError as reason:
        found = shutil.which("kubectl")
        if found is None:
            pytest.skip(f"no kubectl: {reason}")
        return Path(found)


def running(version: str, config: pytest.Config, *, pod_groups: bool = False) -> Iterator[ControlPlane]:
    try:
        build.programs(version, teller(config))
    except build.CannotBuildError as reason:
        pytest.skip(f"no control plane of Kubernetes {version}: {reason}")
    with ControlPlane(version, pod_groups=pod_groups) as plane:
        note_start(config, version)
        yield plane


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
