"""`stowplan explain` on dumps: it says what the engine says, for people and for programs, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.objects.meta import Object
from tests.builders import a_node, a_pod
from tests.world import World

NODES = [a_node("a", cpu=4), a_node("b", cpu=2), a_node("c", cpu=8, taints=["t=v:NoSchedule"])]
BUSY = [a_pod("on-a", cpu="3800m", node="a"), a_pod("on-b", cpu="1500m", node="b")]


def dump(folder: Path, *objects: Object) -> str:
    """As `kubectl get -o yaml` gives it: a List."""
    items = [
        msgspec.to_builtins(each, enc_hook=str) | {"kind": type(each).__name__, "apiVersion": "v1"} for each in objects
    ]
    file = folder / "dump.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(file)


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def test_a_pending_pod_has_the_message_of_its_event_and_the_nearest_nodes(tmp_path: Path) -> None:
    pod = a_pod("web", cpu="1")
    world = World(nodes=NODES)
    world.submit(*BUSY, pod)
    world.run()
    answer = explain("web", "--from", dump(tmp_path, *NODES, *BUSY, pod))
    assert answer.exit_code == 1
    text = " ".join(answer.output.split())
    assert " ".join(world.said("web")[0].split()) in text
    assert "b lacks 500m cpu" in text and "a lacks 800m cpu" in text
    assert text.index("b lacks") < text.index("a lacks"), "the nearest first"


def test_a_pod_with_a_place_has_scores_and_how_far_ahead_the_winner_is(tmp_path: Path) -> None:
    answer = explain("web", "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1")))
    assert answer.exit_code == 0, answer.output
    assert "default/web goes to a" in answer.output and "ahead" in answer.output
    assert "TaintToleration" in answer.output and "untolerated taint" in " ".join(answer.output.split())


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_for_programs_the_form_is_versioned(tmp_path: Path, form: str) -> None:
    answer = explain("web", "-o", form, "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1", node="b")))
    found: Any = json.loads(answer.output) if form == "json" else yaml.safe_load(answer.output)
    assert (found["apiVersion"], found["kind"]) == ("stowplan.io/v1alpha1", "Decision")
    assert (found["node"], found["boundTo"]) == ("a", "b")
    assert set(found["scores"]) == {"a", "b"} and set(found["rejected"]) == {"c"}
    total = sum(found["weights"][name] * score for name, score in found["scores"]["a"]["plugins"].items())
    assert total == found["scores"]["a"]["total"]


def test_reasons_in_brackets_are_printed_as_they_are(tmp_path: Path) -> None:
    gated = a_pod("web", schedulingGates=[{"name": "quota"}, {"name": "bold"}])
    answer = explain("web", "--from", dump(tmp_path, *NODES, gated))
    assert "waiting for scheduling gates: [quota bold]" in " ".join(answer.output.split())


def test_kinds_of_no_use_are_passed_over_and_what_is_wrong_is_named(tmp_path: Path) -> None:
    (tmp_path / "others.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", encoding="utf-8")
    dump(tmp_path, *NODES, a_pod("web", cpu="1"))
    assert explain("web", "--from", str(tmp_path)).exit_code == 0
    answer = explain("nobody", "--from", str(tmp_path))
    assert answer.exit_code == 2 and "there is no pod default/nobody" in answer.output
    (tmp_path / "bad.yaml").write_text("kind: Node\nmetadata: {name: [1]}\n", encoding="utf-8")
    answer = explain("web", "--from", str(tmp_path))
    assert answer.exit_code == 2 and "bad.yaml" in answer.output and "Traceback" not in answer.output


def test_version() -> None:
    assert CliRunner().invoke(main, ["version"]).output.startswith("stowplan 0.")


def test_without_a_pod_each_pending_one_is_looked_at(tmp_path: Path) -> None:
    there = [*NODES, *BUSY, a_pod("small", cpu="100m"), a_pod("large", cpu="3"), a_pod("other", namespace="far", cpu=9)]
    files = ("--from", dump(tmp_path, *there))
    text = " ".join(explain(*files).output.split())
    assert "small" in text and "large" in text and "other" not in text and "on-a" not in text
    answer = explain("-A", "-o", "json", *files)
    found = json.loads(answer.output)
    assert (answer.exit_code, found["kind"]) == (1, "DecisionList")
    assert {each["pod"]: each["node"] for each in found["items"]} == {
        "default/small": "b",
        "default/large": None,
        "far/other": None,
    }
    assert explain("-n", "nowhere", *files).output == "No pod is pending.\n"
    assert explain("web", "-A", *files).exit_code == 2


def test_a_pod_may_be_named_as_kubectl_names_it(tmp_path: Path) -> None:
    answer = explain("pod/web", "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1")))
    assert "default/web goes to a" in answer.output


def test_a_node_promised_to_a_more_important_pod_is_taken(tmp_path: Path) -> None:
    promised = a_pod("first", cpu="3", priority=10, nominated="a")
    answer = explain("web", "--from", dump(tmp_path, NODES[0], promised, a_pod("web", cpu="2")))
    assert answer.exit_code == 1 and "Insufficient cpu" in answer.output


def test_a_bound_pods_room_is_free_for_itself(tmp_path: Path) -> None:
    answer = explain("web", "--from", dump(tmp_path, a_node("a", cpu=1), a_pod("web", cpu="1", node="a")))
    assert answer.exit_code == 0 and "is on a" in answer.output
