"""The last scene: a pod that waits, its diagnosis, the remedy, and the pod that runs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import takewhile

from rich.console import Console

from stowplan.apps.demo import diagnosis, pictures
from stowplan.apps.demo.objects import deployment, nodes
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage
from stowplan.apps.explain import output
from stowplan.apps.explain.answers import Answer

STORY = (
    "A pod waits. `stowplan explain` names every cause, and searches the smallest changes that help; each was tried "
    "before it is shown. This is its answer. Then the command of its first remedy is carried out."
)
REPEATED = ("Last said", "The scheduler says")  # kube-scheduler's own message: the causes above it say more


def play(seed: int) -> Scene:
    """The first worker is the emptiest. The template of `db` misspells the disk that all workers have."""
    stage = NodeStage(seed)
    workers = nodes("worker", "abc")
    for worker in workers:
        worker["metadata"]["labels"]["disk"] = "ssd"
    stage.create(*workers, *(deployment(f"load-{number}", 1, "2", nodeName=f"worker-{number}") for number in (1, 2)))
    stage.create(deployment("db", 1, "1", nodeSelector={"disk": "sdd"}))
    (waiting,) = stage.pods("db")
    answer = diagnosis.explained(stage, waiting)
    for command in answer.commands[0]:
        stage.type_command(command)
    (runs,) = stage.pods("db")
    phase, promised = runs.status.phase, answer.diagnosis.remedies[0].node
    told = f"Remedy 1 is applied: {runs.name} is {phase} on {runs.node_name}."
    went_well = (waiting.node_name, phase, runs.node_name) == ("", "Running", promised)
    pages = [lambda width: [*explanation(answer, width), "", told]]
    return Scene("A pod that waits, and the remedy", STORY, pages, [pictures.chosen(stage.decision(runs))], went_well)


def explanation(answer: Answer, width: int) -> Iterator[str]:
    """Yield what `stowplan explain` prints: the first lines, which have the answer."""
    text = io.StringIO()
    output.show(Console(file=text, width=width, highlight=False, markup=False, emoji=False), answer)
    return takewhile(lambda line: not line.startswith(REPEATED), text.getvalue().splitlines())
