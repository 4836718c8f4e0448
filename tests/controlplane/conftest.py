"""What tests against control planes ask for. The control planes themselves are in `fixtures.py`; the line in the
summary that says what ran against them is in `tests/conftest.py`.

Tests of what users do ask for `cluster`: they run against the embedded cluster and against a real control plane.

Without Go and without ready-made programs these tests are skipped, and the summary says so. With Go there is no way
around them: what is missing is built, and a build that fails is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane import build
from tests.controlplane.cluster import Cluster
from tests.controlplane.fixtures import on_server
from tests.controlplane.place_process import Hub
from tests.controlplane.plane import ControlPlane
from tests.controlplane.served_hub import ServedHub, a_served_hub, with_three_clusters

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
ON_EACH_SERVER = [  # names for `on_server`; other servers are for the long run, and test_servers.py for the short one
    pytest.param("plane", id="on Kubernetes 1.36", marks=pytest.mark.controlplane),
    pytest.param("plane_137", id="on Kubernetes 1.37", marks=[pytest.mark.controlplane, pytest.mark.full]),
    *(
        pytest.param(each, id=f"on Kubernetes {build.minor(each)}", marks=[pytest.mark.controlplane, pytest.mark.full])
        for each in build.OLDER
    ),
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


@pytest.fixture(scope="module", params=ON_EACH_SERVER)
def each_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One after the other."""
    with on_server(request.param, request) as found:
        yield found


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
