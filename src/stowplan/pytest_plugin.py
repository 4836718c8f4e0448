"""A pytest plugin that is installed with Stowplan: the fixture `embedded_cluster`.

    def test_my_policy(embedded_cluster):
        embedded_cluster.start_scheduler(config="config.yaml")
        embedded_cluster.apply("pods.yaml")
        assert embedded_cluster.wait_until_scheduled("web") == "node-1"

    @pytest.mark.embedded_cluster(nodes={"large.yaml": 5}, manifests=["quota.yaml"], scheduler="config.yaml")
    def test_in_a_larger_cluster(embedded_cluster): ...       # with the keywords of EmbeddedCluster

Relative paths start at the folder of the test's file.

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

MARKER = "embedded_cluster(nodes=3, manifests=(), scheduler=False): what that fixture of Stowplan starts with"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def embedded_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A Kubernetes cluster in this process, with three nodes; see `stowplan.testing.EmbeddedCluster`.

    It ends with the test. The test fails if the scheduler's log has errors then (unless `allow_errors` is set).
    """
    from stowplan.testing.embedded_cluster import EmbeddedCluster

    marker = request.node.get_closest_marker("embedded_cluster")
    if marker is not None and marker.args:
        raise pytest.UsageError(f"embedded_cluster{marker.args}: give the arguments by name, for example nodes=4")
    keywords = {"folder": tmp_path, "beside": request.path.parent} | (marker.kwargs if marker else {})
    with EmbeddedCluster(**keywords) as cluster:
        yield cluster
