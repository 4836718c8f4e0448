"""The scenes: what they promise happens, whatever the seed, and everything is decided anew."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable

import pytest
from rich.console import Console

from stowplan.apps.demo import command, diagnosis, pictures
from stowplan.apps.demo.objects import deployment, nodes, profiles
from stowplan.apps.demo.scene import Scene, show
from stowplan.apps.demo.scenes import SCENES, remedy
from stowplan.apps.demo.stage import NodeStage


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("play", SCENES, ids=[play.__module__.rpartition(".")[2] for play in SCENES])
def test_a_scene_goes_as_it_is_told(play: Callable[[int], Scene], seed: int) -> None:
    scene = play(seed)
    assert scene.went_well, text_of(scene)
    assert 2 <= scene.story.count(". ") + 1 <= 4 and scene.why


def test_another_seed_is_another_run_of_the_same_story() -> None:
    one, same, other = (text_of(remedy.play(seed)) for seed in (1, 1, 2))
    assert one == same != other


def text_of(scene: Scene, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    show(console, scene, 1, 1)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_scene_that_goes_wrong_is_told_and_the_exit_code_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Scene("A story", "It promises.", [lambda _: ["nothing"]], ["no reason"], went_well=False)
    assert command.play(Console(highlight=False, markup=False), scenes=[lambda _: wrong]) == 1
    printed = capsys.readouterr()
    assert printed.err == "stowplan: not as it is told: A story\n"
    assert "What to try next:" in printed.out


# -- a stage


def test_pending_pods_that_are_alike_are_one_row_with_a_count() -> None:
    stage = NodeStage(1)
    stage.create(*nodes("worker", "a"), deployment("big", 3, "9"), deployment("web", 2, "3"))
    table = pictures.pending(stage.pods())
    assert [list(column.cells) for column in table.columns] == [
        ["big×3", "web"],
        ["0/1 nodes are available: 1 Insufficient cpu."] * 2,
    ]


def test_the_remedy_is_that_of_explain_and_its_command_is_carried_out() -> None:
    """The API server of the stage is changed by the words that are printed, and by nothing else."""
    stage = NodeStage(1)
    stage.create(*nodes("worker", "ab"), deployment("web", 1, "9"))
    (waiting,) = stage.pods("web")
    answer = diagnosis.explained(stage, waiting)
    (first,) = answer.commands[0]
    shown = list(remedy.explanation(answer, 80))
    assert f"     {first}" in shown and first.startswith("kubectl -n default patch deployment web --type=json -p=")
    assert shown[0].endswith("none of 2 nodes can take it.") and not waiting.node_name
    stage.type_command(first)
    (runs,) = stage.pods("web")
    (document,) = stage.documents("deployments.apps")
    (container,) = document["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "4"}
    assert (runs.status.phase, runs.node_name) == ("Running", answer.diagnosis.remedies[0].node)


def test_other_commands_are_refused() -> None:
    with pytest.raises(ValueError, match="kubectl delete"):
        NodeStage(1).type_command("kubectl delete pod web")


def test_the_reason_names_the_plugins_that_made_the_difference() -> None:
    policy = {"plugins": {"score": {"enabled": [{"name": "FlavourClusterWide", "weight": 6}]}}}
    stage = NodeStage(1, profiles(flavoured=policy))
    load = deployment("load", 1, "1", nodeName="worker-1", labels={"flavour": "gold"})
    stage.create(*nodes("worker", "aa"), load)
    stage.create(deployment("gold", 1, "1", labels={"flavour": "gold"}, schedulerName="flavoured"))
    (pod,) = stage.pods("gold")
    text = pictures.chosen(stage.decision(pod))
    assert f"{pod.name} got worker-0, " in text and "points ahead of worker-1 (FlavourClusterWide +600, " in text


@pytest.mark.parametrize(
    ("started_as", "on_path", "expected"),
    [
        pytest.param(".venv/bin/stowplan", False, ".venv/bin/stowplan", id="`make demo`: below this folder"),
        pytest.param(".venv/bin/stowplan", True, "stowplan", id="on the PATH"),
        pytest.param("/opt/pipx/venvs/x/bin/stowplan", False, "stowplan", id="elsewhere: pipx run"),
        pytest.param("src/stowplan/apps/cli.py", False, "stowplan", id="python -m"),
    ],
)
def test_how_to_call_it_next(started_as: str, on_path: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/stowplan" if on_path else None)
    assert command.program_name(started_as) == expected
