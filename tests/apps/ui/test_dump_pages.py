"""The pages of a dump, without a browser: their figures are those of the commands with `-o json`."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from tests.apps.ui import busy_cluster
from tests.apps.ui.pages_process import PAGES, ServedPages, served
from tests.apps.ui.screenshots import simulated


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return busy_cluster.write(tmp_path_factory.mktemp("dump") / "dump.json")


@pytest.fixture(scope="module")
def pages(dump: Path) -> Iterator[ServedPages]:
    with served("--from", dump, "--config", configuration(dump)) as found:
        found.wait_until_read()
        yield found


def configuration(dump: Path) -> Path:
    return busy_cluster.write_configuration(dump.parent / "config.yaml")


def printed(*arguments: str | Path) -> Any:
    said = CliRunner().invoke(main, [*map(str, arguments), "-o", "json"])
    assert said.exit_code in (0, 1), said.output
    return json.loads(said.stdout)


def text_of(body: bytes) -> str:
    """What a reader sees of a page."""
    found = re.sub(r"<(script|style)\b.*?</\1>", "", body.decode(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"</(td|th|p|li|h\d|dt|dd)>", " ", found))))


@pytest.mark.parametrize("name", PAGES)
def test_each_page_can_be_read(pages: ServedPages, name: str) -> None:
    status, body = pages.get(PAGES[name])
    assert status == 200
    assert b"<h1>" in body and b'lang="en"' in body and b"style=" not in body and b"<script>" not in body


def test_pending_pods_are_those_of_explain(pages: ServedPages, dump: Path) -> None:
    found, expected = pages.json("/pending"), printed("explain", "-A", "--from", dump, "--config", configuration(dump))
    for name in ("items", "extendersNotAsked", "unseen", "otherSchedulers"):
        assert found[name] == expected[name]
    text = text_of(pages.get("/pending")[1])
    lost = sum(item["node"] is None for item in expected["items"])
    assert f"{len(expected['items'])} pods waiting" in text and f"{lost} would get no node now" in text
    for item in expected["items"]:
        assert item["pod"] in text
        if item["node"] is not None:
            assert item["sentence"].rpartition("(")[2].removesuffix(").") in text
    for item in (each for each in expected["items"] if each["node"] is None and "podGroup" not in each):
        assert item["sentence"] in text or item["pod"].startswith("data/late")  # of a group only one is told
    for command in {
        each for item in expected["items"] for one in item["remedies"][:10] for each in one["commands"][:3]
    }:
        assert re.sub(r"\s+", " ", command) in text


@pytest.mark.parametrize("key", ["data/trainer-0", "data/report-1", "shop/typo", "shop/web-0", "search/fresh"])
def test_a_pod_is_that_of_explain(pages: ServedPages, dump: Path, key: str) -> None:
    namespace, _, name = key.partition("/")
    found, expected = (
        pages.json(f"/pods/{key}"),
        printed("explain", name, "-n", namespace, "--from", dump, "--config", configuration(dump)),
    )
    assert {name: found[name] for name in expected} == expected
    text = text_of(pages.get(f"/pods/{key}")[1])
    assert expected["sentence"] in text
    best = sorted(expected["scores"], key=lambda node: -expected["scores"][node]["total"])[:20]
    for node in best:
        assert f"{node} {expected['scores'][node]['total']:,}" in text
    for group in expected["causes"]:
        assert f"{group['count']:,} " in text


def test_a_placement_is_that_of_place_explain(pages: ServedPages, dump: Path) -> None:
    expected = printed("place", "explain", "front", "-n", "shop", "--from", dump)
    found = pages.json("/placements/shop/front")
    for name in ("selected", "aggregatedScores", "dropped", "prioritizeResults", "conditions", "causes", "remedies"):
        assert found[name] == expected[name]
    text = text_of(pages.get("/placements/shop/front")[1])
    for each in expected["aggregatedScores"]:
        assert re.search(rf"{each['clusterName']} [^<]*?{each['score']}", text)
    assert [each["placement"] for each in pages.json("/placements")["items"]] == ["shop/everywhere", "shop/front"]


def test_the_overview_counts_what_the_dump_has(pages: ServedPages, dump: Path) -> None:
    items = json.loads(dump.read_text(encoding="utf-8"))["items"]
    nodes = [each for each in items if each["kind"] == "Node"]
    pods = [each for each in items if each["kind"] == "Pod"]
    placed = [each for each in pods if each["spec"].get("nodeName")]
    found = pages.json("/")
    assert found["nodes"]["all"] == len(nodes) == len(found["map"]["names"])
    assert found["pods"] == {"onNodes": len(placed), "pending": len(pods) - len(placed)}
    assert sum(each["pods"] for each in found["pending"]) == len(pods) - len(placed)
    cpu = next(each for each in found["resources"] if each["name"] == "cpu")
    wanted = [each["spec"]["containers"][0]["resources"]["requests"]["cpu"] for each in placed]
    assert cpu["allocatable"] == 16_000 * len(nodes)
    held = 4000  # by the reservation
    assert cpu["requested"] - held == sum(int(each[:-1]) if each.endswith("m") else 1000 * int(each) for each in wanted)
    text = text_of(pages.get("/")[1])
    assert f"Nodes {len(nodes)}" in text and f"Pods on nodes {len(placed)}" in text


def test_a_node_lists_its_pods_and_says_who_cannot_come(pages: ServedPages, dump: Path) -> None:
    items = json.loads(dump.read_text(encoding="utf-8"))["items"]
    here = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in items if each["kind"] == "Pod" and each["spec"].get("nodeName") == "node-03"
    }  # fmt: skip
    found = pages.json("/nodes/node-03")
    assert {each["pod"] for each in found["pods"]} == here
    by_pod = {each["pod"]: each for each in found["pending"]}
    assert by_pod["search/fresh"]["takes"] and not by_pod["shop/typo"]["takes"]
    assert "nodeSelector" in by_pod["shop/typo"]["causes"][0]["text"]
    assert by_pod["shop/gated"]["podCauses"]
    explained = pages.json("/pods/data/trainer-0")
    group = next(each for each in explained["causes"] if "node-03" in each["nodes"])
    trainer = next(each for key, each in by_pod.items() if key.startswith("data/trainer"))
    assert [each["text"] for each in trainer["causes"]] == [each["text"] for each in group["causes"]]


def test_groups_say_what_they_wait_for(pages: ServedPages, dump: Path) -> None:
    found = {each["name"]: each for each in pages.json("/groups")["items"]}
    assert {name: (each["minAvailable"], each["waitingPods"]) for name, each in found.items()} == {
        "ring": (4, 4), "mesh": (8, 8), "late": (12, 3),
    }  # fmt: skip
    arguments = ("-n", "data", "--from", dump, "--config", configuration(dump))
    for name in ("mesh-0", "late-0"):
        expected = printed("explain", name, *arguments)
        assert expected["message"] == found[name.partition("-")[0]]["message"]
    text = text_of(pages.get("/groups")[1])
    assert "pod group data/late: 3 of 12 pods exist" in text
    assert "data/nightly first node-03" in text
    assert {each["node"] for each in pages.json("/groups")["held"]} == {"node-03", "node-00"}


def test_decisions_have_filters(pages: ServedPages) -> None:
    assert {each["event"] for each in pages.json("/decisions")["items"]} == {"bound", "failed"}
    assert {each["pod"] for each in pages.json("/decisions?event=bound")["items"]} == {"shop/web-0"}
    assert {each["pod"] for each in pages.json("/decisions?text=TRAINER-1")["items"]} == {"data/trainer-1"}
    assert pages.json("/decisions?namespace=nowhere")["items"] == []


@pytest.mark.parametrize(
    "path", ["/pods/a/b", "/nodes/none", "/placements/a/b", "/nothing", "/pods/a", "/static/x.css"]
)
def test_what_is_not_there_is_not_found(pages: ServedPages, path: str) -> None:
    assert pages.get(path)[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/?by=%00", "/?by=" + "x" * 5000, "/find?q=%ff%fe", "/decisions?event=x&text=%00", "/events/?v=" + "9" * 99,
        "/pending?namespace=%3Cscript%3E", "/simulations?runs=,,,",
    ],
)  # fmt: skip
def test_no_query_breaks_a_page(pages: ServedPages, path: str) -> None:
    assert pages.get(path)[0] in (200, 204)


def test_without_a_cluster_pages_say_what_to_start(tmp_path: Path) -> None:
    with served("--simulation", simulated(tmp_path)) as found:
        status, body = found.get("/")
        assert status == 503 and "--from DUMP" in text_of(body)
        assert found.get("/api/")[0] == 503


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--from", "{dump}", "--context", "x"], "--from and a live cluster", id="a dump and a cluster"),
        pytest.param(["--token", "short", "--from", "{dump}"], "--token has 5 characters", id="a short token"),
        pytest.param(["--token", "a" * 20 + "&b", "--from", "{dump}"], "other characters", id="a token for no address"),
        pytest.param(["--simulation", "{folder}"], "has no summary.json", id="a folder without a simulation"),
        pytest.param(
            ["--of", "x", "--kubeconfig", "{folder}/none"], "no such file", id="a kubeconfig that is not there"
        ),
    ],
)
def test_flags_that_cannot_be_used_are_told(dump: Path, arguments: list[str], expected: str) -> None:
    given = [each.format(dump=dump, folder=dump.parent) for each in arguments]
    said = CliRunner().invoke(main, ["ui", "--no-browser", *given])
    assert said.exit_code == 2 and expected in said.output, said.output
