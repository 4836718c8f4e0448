"""What an answer says in one sentence, and its causes in one line each."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.texts import ago, counted, some
from stowplan.diagnosis.diagnosis import CauseGroup, NamedCause
from stowplan.framework.decision import Decision


def sentence(answer: Answer) -> str:
    """Return the answer in one sentence."""
    who, since = _who(answer), _since(answer)
    verb = "wait" if answer.alike else "waits"
    if answer.serving.absent:
        return f"{who} {verb}{since}, and {answer.serving.text}."
    decision = answer.explanation.decision
    if answer.node is not None:
        return f"{who} would be scheduled to {some(answer.nodes)} ({margin(decision)})."
    if answer.explanation.because and answer.explanation.group is None:
        return f"{who} {'have' if answer.alike else 'has'} no node{since}: {answer.explanation.because}."
    if decision.gated is not None:
        return f"{who} {'are' if answer.alike else 'is'} gated{since}: {answer.explanation.why_not}."
    evicted = answer.evictions
    if evicted is not None:
        nodes = sorted(set(evicted.nodes.values()))
        victims = some([each.key for each in evicted.victims])
        number = counted(len(evicted.victims), "pod")
        return f"{who} would be scheduled to {some(nodes)} after the eviction of {number}: {victims}."
    group = answer.explanation.group
    if group is not None:
        found = sum(node is not None for node in group.nodes.values())
        fit = f"{found} of {len(group.nodes)} pods fit, {group.needed} must"
        return f"{who} {verb}{since}: of its group {group.name} {fit}."
    has = "have" if answer.alike else "has"
    nodes_known = decision.trail.total
    if nodes_known == 0:
        return f"{who} {has} no node{since}: the cluster has none."
    them = "them" if answer.alike else "it"
    none = f"none of {nodes_known} nodes can" if nodes_known > 1 else "the only node cannot"
    return f"{who} {has} no node{since}: {none} take {them}."


def _who(answer: Answer) -> str:
    if not answer.alike:
        return answer.pod.key
    if answer.owner is None:
        return f"{answer.pod.key} and {counted(len(answer.alike), 'pod')} like it"
    return f"{len(answer.keys)} pods of {answer.owner.kind.lower()} {answer.owner.key}"


def _since(answer: Answer) -> str:
    if answer.waiting.since is None or not answer.now or answer.bound_to:
        return ""
    return f" for {ago(answer.now - answer.waiting.since)}"


def margin(decision: Decision) -> str:
    """Return how far the chosen node is ahead."""
    totals = sorted(decision.trail.totals.tolist(), reverse=True)
    ahead = totals[0] - totals[1] if len(totals) > 1 else None
    how = "the only feasible node" if ahead is None else f"{ahead} ahead" if ahead else "drawn from the best"
    return f"{how}; {len(totals)} of {decision.trail.total} nodes feasible"


def cause_lines(answer: Answer) -> Iterator[str]:
    """Yield one line for the pod as a whole, and one for each group of nodes."""
    own = [each for each in answer.diagnosis.pod_causes if each.cause.code != "scheduler"]
    if own:
        yield f"the pod: {joined(own)}"
    said = {each.cause for each in own}
    for group in answer.diagnosis.groups:
        if not said.issuperset(each.cause for each in group.causes):
            yield f"{where(group)}: {joined(group.causes)}"


def where(group: CauseGroup) -> str:
    return group.nodes[0] if len(group.nodes) == 1 else f"{len(group.nodes)} nodes"


def joined(causes: list[NamedCause] | tuple[NamedCause, ...]) -> str:
    return " · ".join(dict.fromkeys(each.cause.text for each in causes))


def waiting_lines(answer: Answer) -> Iterator[str]:
    """Yield what is known of the wait: who serves the pod, its last event or condition, its place in the queue."""
    if answer.serving.text and not answer.serving.absent:
        yield f"{answer.serving.text}."
    queue = answer.waiting.queue
    if queue:
        until = queue.get("backoffSeconds")
        backoff = f", next in {ago(until)}" if until else ""
        yield f"In its queue: {queue['stage']}, {counted(int(queue['attempts']), 'attempt')}{backoff}."
    said = answer.waiting.event or answer.waiting.condition
    if said:
        at = said.get("at", said.get("since"))
        when = f" ({ago(answer.now - at)} ago)" if at and answer.now else ""
        times = f", {said['count']} times" if said.get("count", 1) > 1 else ""
        text = said.get("note") or said.get("message") or ""
        yield f"Last said{when}{times}: {said.get('reason', '')}: {text}"
