"""The example of a cluster policy works as its page describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.place.configuration import load_policy
from stowplan.testing import check_plugin

FOLDER = Path(__file__).parents[2] / "examples" / "06-cluster-policy"
NAME = "residency.py:Residency"


def explained(hub: Path) -> tuple[int, dict[str, Any]]:
    words = ["place", "explain", "shop", "--from", str(hub), "--config", str(FOLDER / "config.yaml"), "-o", "json"]
    done = CliRunner().invoke(main, words)
    return done.exit_code, json.loads(done.output)


def test_the_cheapest_cluster_of_an_allowed_region() -> None:
    code, found = explained(FOLDER / "hub.yaml")
    assert (code, [each["clusterName"] for each in found["selected"]]) == (0, ["birch"])
    assert found["dropped"] == [{"clusterName": "cedar", "plugin": NAME, "reason": "its region is ohio"}]
    scores = next(each for each in found["prioritizeResults"] if each["name"] == NAME)
    assert (scores["weight"], scores["scores"]) == (2, {"alder": 30, "birch": 80})


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        pytest.param("us", ["cedar"], id="another region"),
        pytest.param(None, ["birch"], id="anywhere"),
        pytest.param("mars", [], id="a region that no one knows"),
    ],
)
def test_other_labels(tmp_path: Path, label: str | None, expected: list[str]) -> None:
    objects = list(yaml.safe_load_all((FOLDER / "hub.yaml").read_text()))
    objects[-1]["metadata"]["labels"] = {} if label is None else {"data-residency": label}
    file = tmp_path / "hub.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    _, found = explained(file)
    assert [each["clusterName"] for each in found["selected"]] == expected
    if label == "mars":
        assert found["error"] == f"{NAME}: metadata.labels.data-residency: found 'mars'; use one of eu, us"


def test_it_passes_the_checks() -> None:
    policy = load_policy(FOLDER / "config.yaml").policy
    plugin = policy.prioritizers[NAME].plugin
    assert check_plugin(plugin) == []


def test_a_price_that_names_no_score() -> None:
    made: Any = type(load_policy(FOLDER / "config.yaml").policy.prioritizers[NAME].plugin)
    with pytest.raises(Exception, match="price is 'hourly'"):
        made({}, price="hourly")
