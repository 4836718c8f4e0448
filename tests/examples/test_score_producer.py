"""The producer writes to a hub, and the Placement of the example uses the score."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stowplan.testing import EmbeddedCluster
from tests.examples.loading import EXAMPLES, loaded

FOLDER = EXAMPLES / "07-score-producer"


def test_it_writes_scores_that_the_placement_asks_for(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(embedded.kubeconfig))
    for name in ("cluster1", "cluster2"):
        embedded.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    asyncio.run(loaded(FOLDER / "latency.py").main({"cluster1": 12.5, "cluster2": 480}))
    assert capsys.readouterr().out == "cluster1 96 written\ncluster2 -91 written\n"
    placement = yaml.safe_load((FOLDER / "placement.yaml").read_text())
    (configuration,) = placement["spec"]["prioritizerPolicy"]["configurations"]
    asked = configuration["scoreCoordinate"]["addOn"]
    found = embedded.get("AddOnPlacementScore", f"cluster1/{asked['resourceName']}")
    assert found is not None and found["status"]["scores"] == [{"name": asked["scoreName"], "value": 96}]
    embedded.apply(FOLDER / "placement.yaml")


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=0, folder=tmp_path) as cluster:
        yield cluster
