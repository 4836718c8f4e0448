"""A pytest plugin that is installed with Stowplan: the fixture `embedded_cluster`.

    def test_my_policy(embedded_cluster):
        embedded_cluster.start_scheduler(config=Path("config.yaml"))
        embedded_cluster.apply("pods.yaml")
        embedded_cluster.wait_until(lambda: embedded_cluster.node_of("default/web") == "node-1")

    @pytest.mark.embedded_cluster(nodes=5)                    # the keywords of EmbeddedCluster
    def test_in_a_larger_cluster(embedded_cluster): ...

Every run of pytest loads this module, whatever is tested, so it imports nothing but pytest until a test asks for the
fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stowplan.testing.embedded_cluster import EmbeddedCluster

MARKER = "embedded_cluster(nodes=3): what the fixture embedded_cluster of Stowplan starts with"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def embedded_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A Kubernetes cluster in this process, with three nodes; see `stowplan.testing.EmbeddedCluster`.

    It ends with the test. The test fails if the scheduler's log has errors then (unless `allow_errors` is set).
    """
    from stowplan.testing.embedded_cluster import EmbeddedCluster

    marker = request.node.get_closest_marker("embedded_cluster")
    with EmbeddedCluster(folder=tmp_path, **(marker.kwargs if marker else {})) as cluster:
        yield cluster
