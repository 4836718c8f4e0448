"""Several pods: each is judged after those before it in the queue, and remedies are tried for all that are alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from tests.apps.explain import schema
from tests.apps.explain.test_explain import dump
from tests.apps.explain.test_output import owned

ONE = [a_node("a", cpu=4)]


def asked(folder: Path, there: Sequence[Object], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Return the exit code, the items by the name of the pod, and the text."""
    files = ("--from", dump(folder, *there))
    plain = CliRunner().invoke(main, ["explain", *arguments, *files], env={"COLUMNS": "80"})
    found = CliRunner().invoke(main, ["explain", *arguments, "-o", "json", *files])
    document = json.loads(found.stdout)
    schema.check(document)
    assert plain.exit_code == found.exit_code
    return found.exit_code, {each["pod"].rpartition("/")[2]: each for each in document["items"]}, plain.stdout


def nodes(items: dict[str, Any]) -> dict[str, str | None]:
    return {name: each["node"] for name, each in items.items()}


def replicas(number: int, cpu: str, **spec: Any) -> list[Pod]:
    labels = {"app": "web", "pod-template-hash": "7f9c"}
    return [
        owned(a_pod(f"web-7f9c-{at}", cpu=cpu, labels=labels, **spec), "ReplicaSet", "web-7f9c") for at in range(number)
    ]


def born(pod: Pod, hour: int) -> Pod:
    at = datetime(2026, 1, 1, hour, tzinfo=UTC)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=at))


@pytest.mark.parametrize(
    ("pods", "first"),
    [
        pytest.param([a_pod("x", cpu="3"), a_pod("y", cpu="3")], "x", id="as they are listed"),
        pytest.param([born(a_pod("x", cpu="3"), 2), born(a_pod("y", cpu="3"), 1)], "y", id="the older one"),
        pytest.param(
            [born(a_pod("x", cpu="3"), 1), born(a_pod("y", cpu="3", priority=5), 2)], "y", id="the higher priority"
        ),
    ],
)
def test_pods_that_do_not_fit_together_are_judged_in_queue_order(tmp_path: Path, pods: list[Pod], first: str) -> None:
    code, items, text = asked(tmp_path, [*ONE, *pods])
    second = "x" if first == "y" else "y"
    assert code == 1 and nodes(items) == {first: "a", second: None}
    assert text.startswith("1 of 2 pending pods would get no node, judged in queue order.\n")


def test_if_all_fit_together_the_exit_code_is_0(tmp_path: Path) -> None:
    code, items, text = asked(tmp_path, [*ONE, a_pod("x", cpu="2"), a_pod("y", cpu="2")])
    assert code == 0 and nodes(items) == {"x": "a", "y": "a"}
    assert text.startswith("All 2 pending pods would get a node, judged in queue order.\n")


def test_pods_of_other_namespaces_take_room_too(tmp_path: Path) -> None:
    there = [*ONE, a_pod("ours", cpu="3"), a_pod("theirs", namespace="far", cpu="3", priority=9)]
    code, items, text = asked(tmp_path, there)
    assert code == 1 and nodes(items) == {"ours": None}
    assert text.startswith("1 of 1 pending pod would get no node, judged in queue order with 1 other.\n")
    assert "far/theirs" not in text


def test_what_is_evicted_for_one_pod_is_gone_for_the_next(tmp_path: Path) -> None:
    low = [a_pod(f"low-{at}", cpu="2", node="a") for at in range(2)]
    urgent = [a_pod(f"urgent-{at}", cpu="2", priority=9) for at in range(3)]
    code, items, text = asked(tmp_path, [*ONE, *low, *urgent])
    evicted = [each["preemption"] and [pod["pod"] for pod in each["preemption"]["victims"]] for each in items.values()]
    assert code == 1 and sorted(str(each) for each in evicted[:2]) == ["['default/low-0']", "['default/low-1']"]
    assert evicted[2] is None and nodes(items) == dict.fromkeys(("urgent-0", "urgent-1", "urgent-2"))
    assert "urgent-0 and 1 alike" in " ".join(text.split())


def test_pods_that_are_alike_cost_one_diagnosis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosed: list[str] = []
    diagnose = Snapshot.diagnose

    def counting(self: Snapshot, pod: Pod, **options: Any) -> Any:
        diagnosed.append(pod.name)
        return diagnose(self, pod, **options)

    monkeypatch.setattr(Snapshot, "diagnose", counting)
    _, items, text = asked(tmp_path, [*ONE, *replicas(30, "1"), a_pod("other", cpu="3")])
    assert len([each for each in items.values() if each["node"] is None]) == 27
    assert sorted(diagnosed) == ["other", "other", "web-7f9c-4", "web-7f9c-4"], "once for each form of output"
    assert "4 of deployment/web" in text and "26 of deployment/web" in text


def test_replicas_of_one_workload_are_judged_together(tmp_path: Path) -> None:
    code, items, text = asked(tmp_path, [*ONE, *replicas(3, "2")], "deploy/web")
    assert code == 1 and list(nodes(items).values()) == ["a", "a", None]
    assert text.startswith("2 pods of deployment default/web would be scheduled to a (")


# -- remedies for all


def remedies(items: dict[str, Any]) -> dict[str, Any]:
    lost = next(each for each in items.values() if each["node"] is None)
    return {each["code"]: each for each in lost["remedies"]}


def test_a_remedy_says_how_many_replicas_it_helps_and_those_that_help_all_come_first(tmp_path: Path) -> None:
    tainted = [a_node(name, cpu=4, taints=["t=v:NoSchedule"]) for name in ("x", "y")]
    code, items, text = asked(tmp_path, [*tainted, *replicas(3, "3")], "deploy/web")
    found = remedies(items)
    assert code == 1
    assert (found["tolerate"]["helps"], found["tolerate"]["triedFor"]) == (2, 3)
    assert found["tolerate"]["nodes"] == {"default/web-7f9c-0": "x", "default/web-7f9c-1": "y"}
    assert "tolerate t=v:NoSchedule → x, y; 2 of 3 pods" in " ".join(text.split())
    counts = [each["helps"] for each in next(iter(items.values()))["remedies"]]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize(
    ("number", "added"),
    [pytest.param(4, 1, id="one is enough"), pytest.param(5, 2, id="two"), pytest.param(23, 11, id="many")],
)
def test_nodes_are_added_until_all_replicas_run(tmp_path: Path, number: int, added: int) -> None:
    _, items, text = asked(tmp_path, [*ONE, *replicas(number, "2")], "deploy/web")
    found = remedies(items)["add-nodes"]
    assert (found["helps"], found["triedFor"]) == (number, number)
    assert [each["number"] for each in found["changes"] if each["type"] == "addNodes"] == [added]
    assert f"{'add a node' if added == 1 else f'add {added} nodes'} like a →" in text


def test_a_request_is_lowered_until_all_replicas_run(tmp_path: Path) -> None:
    _, items, _ = asked(tmp_path, [*ONE, *replicas(3, "5")], "deploy/web")
    found = remedies(items)["lower-request"]
    assert (found["helps"], found["triedFor"]) == (3, 3)
    assert {each["patch"][0]["value"] for each in found["changes"]} == {"1333m"}
    assert len(found["commands"]) == 1, "they have one template"


def test_pods_without_an_owner_have_a_command_each(tmp_path: Path) -> None:
    pods = [a_pod(f"bare-{at}", cpu="1", labels={"app": "x"}) for at in range(5)]
    code, items, text = asked(tmp_path, [a_node("a", cpu=9, taints=["t=v:NoSchedule"]), *pods])
    found = remedies(items)["tolerate"]
    assert code == 1 and [each.split()[5] for each in found["commands"]] == [pod.name for pod in pods]
    assert "default/bare-0 and 4 pods like it have no node" in " ".join(text.split())
    assert "… and 4 more like it; --all-remedies shows them" in text
    assert "patch pod bare-4" in asked(tmp_path, [a_node("a", taints=["t=v:NoSchedule"]), *pods], "--all-remedies")[2]


def test_a_pod_that_waits_is_not_evicted_for_another(tmp_path: Path) -> None:
    """The first pod has no node yet: deleting it would be no remedy, but another order."""
    _, items, _ = asked(tmp_path, [*ONE, a_pod("first", cpu="3"), a_pod("second", cpu="3")])
    assert not [each for each in items["second"]["remedies"] if "default/first" in each["evicted"]]


def test_the_largest_request_with_which_all_pods_fit_is_proposed(tmp_path: Path) -> None:
    found = remedies(asked(tmp_path, [*ONE, *replicas(3, "2")])[1])["lower-request"]
    assert "from 2 to 1333m" in found["text"] and (found["helps"], found["triedFor"]) == (3, 3)
    assert found["also"] == [], "it asks for more than half of what it asks for now"


def test_a_remedy_that_rolls_out_running_pods_says_so(tmp_path: Path) -> None:
    pods = replicas(3, "3")
    pods[0] = msgspec.structs.replace(pods[0], spec=msgspec.structs.replace(pods[0].spec, node_name="a"))
    _, items, text = asked(tmp_path, [*ONE, *pods], "--all-remedies")
    told = "rolls out all 3 pods, 1 of them running"
    assert told in remedies(items)["lower-request"]["also"] and told in text
