"""The pods of a DaemonSet on the screen: each is for a node of its own. Those kept by the same cause are one answer.

What would help all of them is shown: changes of the template that they share. `explain POD` has the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from stowplan.apps.explain.answers import Answer, FurtherPod
from stowplan.apps.explain.sentences import is_elsewhere
from stowplan.diagnosis.diagnosis import CauseGroup
from stowplan.diagnosis.remedy import Remedy


def together(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers; those about pods of one DaemonSet with the same cause are one, in the place of the first."""
    found: list[Answer | None] = list(answers)
    alike: dict[Hashable, list[int]] = {}
    for at, answer in enumerate(answers):
        here = _own_group(answer)
        if here is not None:
            alike.setdefault((answer.owner, here.causes, answer.diagnosis.pod_causes), []).append(at)
    for places in alike.values():
        same = [answers[at] for at in places]
        merged = _merged(same) if len(same) > 1 else None
        if merged is not None:
            for at in places:
                found[at] = None
            found[places[0]] = merged
    return [each for each in found if each is not None]


def _own_group(answer: Answer) -> CauseGroup | None:
    """Return why its own node rejects a pod of a DaemonSet; None for any other pod, or if it would get its node."""
    is_daemon = answer.owner is not None and answer.owner.kind == "DaemonSet" and not answer.alike
    if not is_daemon or answer.node is not None or answer.evictions is not None:
        return None
    here = [group for group in answer.diagnosis.groups if not is_elsewhere(group)]
    return here[0] if len(here) == 1 and len(here[0].nodes) == 1 else None


def _merged(answers: Sequence[Answer]) -> Answer | None:
    """Return one answer about all these pods; None if nothing that helps is the same for all of them.

    Pods for which no remedy was searched, because they are too many, do not count.
    """
    first, groups = answers[0], [group for each in answers if (group := _own_group(each)) is not None]
    nodes = tuple(node for group in groups for node in group.nodes)
    everyone, answers = answers, [each for each in answers if each.diagnosis.remedies or not each.diagnosis.bounded]
    shared = [number for number, each in enumerate(first.diagnosis.remedies) if _same(each, answers) is not None]
    if first.diagnosis.remedies and not shared:
        return None
    remedies = []
    for number in shared:
        same = _same(first.diagnosis.remedies[number], answers) or []
        where = {each.pod.key: remedy.node for each, remedy in zip(answers, same, strict=True) if remedy.node}
        evicted = tuple(dict.fromkeys(key for remedy in same for key in remedy.evicted))
        remedies.append(replace(same[0], nodes=where, evicted=evicted))
    return replace(
        first,
        diagnosis=replace(
            first.diagnosis, groups=(CauseGroup(nodes, groups[0].causes),), remedies=tuple(remedies), waits=()
        ),
        commands=tuple(first.commands[number] for number in shared),
        alike=tuple(FurtherPod(each.pod) for each in everyone[1:]),
        tried_for=len(answers),
    )


def _same(remedy: Remedy, answers: Sequence[Answer]) -> list[Remedy] | None:
    """Return each pod's remedy with the same words; None if one of them has none."""
    found = [next((each for each in one.diagnosis.remedies if each.text == remedy.text), None) for one in answers]
    known = [each for each in found if each is not None]
    return known if len(known) == len(answers) else None
