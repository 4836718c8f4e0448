"""The answer about a capacity, as a value and for programs: `-o json|yaml`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.apps import json_output
from stowplan.apps.capacity.question import Question
from stowplan.apps.explain import answer_json
from stowplan.apps.explain.answers import Answer
from stowplan.framework.causes import Cause
from stowplan.simulation.capacity import NodesNeeded

NO_NODE, QUOTA, AT_MAX, ALL_WANTED = "no-node", "quota", "max", "replicas"


@dataclass(frozen=True)
class Stop:
    """Why the count ended: no node for the next pod (`answer` has the causes), a quota (`cause`), or a number."""

    reason: str
    answer: Answer | None = None
    cause: Cause | None = None


@dataclass(frozen=True)
class TemplateAnswer:
    """How many nodes of a template all wanted pods need. `failed`: what stops the first pod that never fits.

    `daemon_sets`: the keys of those that have a pod on each of these nodes.
    """

    name: str
    needed: NodesNeeded
    daemon_sets: tuple[str, ...] = ()
    failed: Answer | None = None


@dataclass(frozen=True)
class CapacityAnswer:
    """`fits`: how many pods found a node. `by_node`: how many each node took, the one with the most first.

    `wanted`: how many were asked for. `pending`: pods of the cluster that wait for a node, and are not counted.
    """

    question: Question
    fits: int
    by_node: Counter[str]
    stop: Stop
    wanted: int | None = None
    templates: tuple[TemplateAnswer, ...] = ()
    nodes: int = 0
    pending: int = 0
    not_asked: Sequence[str] = ()
    unseen: Sequence[str] = ()

    @property
    def enough(self) -> bool:
        """True if as many pods fit as were asked for; one, if no number was."""
        return self.fits >= (1 if self.wanted is None else self.wanted)

    def as_json(self) -> dict[str, Any]:
        namespace, _, name = self.question.key.rpartition("/")
        return {
            "apiVersion": json_output.VERSION,
            "kind": "Capacity",
            "of": {"kind": self.question.kind, "namespace": namespace, "name": name},
            "fits": self.fits,
            "wanted": self.wanted,
            "enough": self.enough,
            "byNode": dict(self.by_node),
            "stop": _stop(self.stop),
            "templates": [_template(each) for each in self.templates],
            "pendingPods": self.pending,
            "extendersNotAsked": list(self.not_asked),
            "unseen": list(self.unseen),
        }


def _stop(stop: Stop) -> dict[str, Any]:
    found: dict[str, Any] = {"reason": stop.reason, "message": "", "podCauses": [], "causes": []}
    if stop.cause is not None:
        cause = {"plugin": "", "code": stop.cause.code, "text": stop.cause.text, "details": dict(stop.cause.details)}
        return found | {"message": stop.cause.text, "podCauses": [cause]}
    return found if stop.answer is None else found | _causes(stop.answer)


def _causes(answer: Answer) -> dict[str, Any]:
    told = answer_json.diagnosed(answer.diagnosis, ())
    return {"message": answer.explanation.why_not, "podCauses": told["podCauses"], "causes": told["causes"]}


def _template(found: TemplateAnswer) -> dict[str, Any]:
    causes = {"message": "", "podCauses": [], "causes": []} if found.failed is None else _causes(found.failed)
    needed = found.needed
    return {
        "template": found.name, "nodes": needed.number, "fits": needed.placed, "byNode": dict(needed.by_node),
        "daemonSets": list(found.daemon_sets), **causes,
    }  # fmt: skip
