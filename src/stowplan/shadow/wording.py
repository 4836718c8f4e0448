"""The sentences of verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.framework.decision import Verdict as Rejection
from stowplan.objects.pods import Pod
from stowplan.shadow.question import OurAnswer
from stowplan.shadow.transitions import Transition

MOST_NAMED = 3


def change(each: Transition, decision: Transition) -> str:
    """Return what a change did, and how long before or after a decision: "shop/web-1 came to n3, 4 ms later"."""
    span = abs(each.at - decision.at)
    length = f"{span:.1f} s" if span >= 1 else f"{span * 1000:.0f} ms"
    return f"{_what(each)} {length} {'earlier' if each.number < decision.number else 'later'}"


def _what(each: Transition) -> str:
    before, after = each.before, each.after
    if isinstance(each.subject, Pod):
        name = f"pod {each.subject.key}"
        if isinstance(after, Pod) and after.node_name and not (isinstance(before, Pod) and before.node_name):
            return f"{name} came to {after.node_name}"
        if isinstance(after, Pod) and after.node_name:
            return f"{name} on {after.node_name} {'began to end' if after.terminating else 'changed'}"
        if isinstance(after, Pod) and after.nominated_node:
            return f"{name} was nominated to {after.nominated_node}"
        if isinstance(before, Pod) and before.node_name:
            return f"{name} left {before.node_name}"
        return f"{name} lost its nomination"
    name = f"{type(each.subject).__name__} {each.subject.key}"
    return f"{name} was {'deleted' if after is None else 'created' if before is None else 'changed'}"


def race(there: str, undone: Sequence[str], made: Sequence[str]) -> str:
    """Return in which cluster the decision was right."""
    subject = f"{there} is best" if there else "no node is feasible"
    parts = [f"before {_some(undone)}"] if undone else []
    parts += [f"once {_some(made)}"] if made else []
    return f"{subject} {' and '.join(parts)}"


def _some(changes: Sequence[str]) -> str:
    named = "; ".join(changes[:MOST_NAMED])
    return f"{named} and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else named


def lower_score(answer: OurAnswer) -> str:
    scores = [each for each in answer.scores() if each.there != each.here]
    scores.sort(key=lambda each: -abs(((each.there or 0) - each.here) * each.weight))
    shown = ", ".join(f"{each.plugin} {each.there} and {each.here}" for each in scores[:MOST_NAMED])
    return f"scores {answer.total_there} there and {answer.total_here} here: {shown}"


def rejected(there: str, rejection: Rejection | None) -> str:
    if rejection is None:
        return f"{there} is not feasible"
    by = f" ({rejection.plugin})" if rejection.plugin else ""
    return f"{there}: {', '.join(rejection.reasons)}{by}"
