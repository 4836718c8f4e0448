"""What an answer says in one sentence, and its causes in one line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.texts import ago, counted, some
from stowplan.diagnosis.diagnosis import CauseGroup, NamedCause
from stowplan.engine.explain import Evictions
from stowplan.framework.decision import Decision

MOST_NODES = 3  # that are named
CORDON_TAINT = "taint node.kubernetes.io/unschedulable:NoSchedule"


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
    if decision.error:
        return f"{who} {'have' if answer.alike else 'has'} no node{since}: a plugin fails."
    if decision.gated is not None:
        return f"{who} {'are' if answer.alike else 'is'} gated{since}: {answer.explanation.why_not}."
    evicted = answer.evictions
    if evicted is not None:
        nodes = sorted(set(evicted.nodes.values()))
        victims = some([each.key for each in evicted.victims])
        number = counted(len(evicted.victims), "pod")
        return (
            f"{who} would be scheduled to {some(nodes)} after the eviction of {number}: {victims}{_violated(evicted)}."
        )
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


def situation(answer: Answer) -> str:
    """Return what is said first of a pod that no scheduler looks at: it has a node, or is being deleted."""
    pod, node = answer.pod, answer.bound_to
    if not node:
        told = f"{pod.key} is being deleted, so that no scheduler takes it" if pod.terminating else ""
    elif pod.finished:
        told = f"{pod.key} has ended on {node}"
    else:
        told = f"{pod.key} is on {node}" + ("" if answer.is_node_known else ", a node that does not exist")
    return f"{told}; this is how it would be scheduled now." if told else ""


def only_after_evictions(answer: Answer) -> bool:
    """True for pods that have no node as things are, and get one by preemption."""
    refused = answer.explanation.because and answer.explanation.group is None
    served = not answer.serving.absent and answer.explanation.decision.gated is None
    return answer.node is None and served and not refused and answer.evictions is not None


def _violated(evicted: Evictions) -> str:
    if not evicted.violations:
        return ""
    one = len(evicted.victims) == 1
    return f"; this violates {'its' if one else 'a'} PodDisruptionBudget"


def _who(answer: Answer) -> str:
    if not answer.alike:
        return answer.pod.key
    if answer.owner is None:
        return f"{answer.pod.key} and {counted(len(answer.alike), 'pod')} like it"
    return f"{len(answer.keys)} pods of {answer.owner.kind.lower()} {answer.owner.key}"


def _since(answer: Answer) -> str:
    if answer.waiting.since is None or not answer.now or answer.bound_to or answer.file:
        return ""
    return f" for {ago(answer.now - answer.waiting.since)}"


def margin(decision: Decision) -> str:
    """Return why this node was chosen, and how many could have been."""
    totals = sorted(decision.trail.totals.tolist(), reverse=True)
    known = decision.trail.total
    if len(totals) < 2:
        return f"the only one of {known} nodes that can take it" if known > 1 else "the only node"
    best = totals.count(totals[0])
    points = counted(totals[0] - totals[1], "point")
    how = f"chosen at random from {best} nodes with the best score" if best > 1 else f"best score, by {points}"
    return f"{how}; {len(totals)} of {known} nodes can take it"


def cause_lines(answer: Answer, named: int = MOST_NODES) -> Iterator[str]:
    """Yield one line for the pod as a whole, and one for each group of nodes. `named`: nodes of a large group."""
    own = [each for each in answer.diagnosis.pod_causes if each.cause.code != "scheduler"]
    if own:
        yield f"the pod: {joined(own)}"
    for nodes, text in cause_rows(answer):
        yield f"{where(nodes, named)}: {text}"


def cause_rows(answer: Answer) -> list[tuple[tuple[str, ...], str]]:
    """Return nodes, and what they have against the pod beside what is wrong with the pod itself.

    Groups that differ only in what is said already are one. If the pod is for some nodes only (that of a DaemonSet is
    for one), these come first, and nothing else is said of the others.
    """
    said = {each.cause.text for each in answer.diagnosis.pod_causes}
    found: dict[str, tuple[str, ...]] = {}
    here = [group for group in answer.diagnosis.groups if not is_elsewhere(group)]
    elsewhere = [replace(group, causes=_limited(group) if here else group.causes) for group in answer.diagnosis.groups]
    for group in (*here, *(each for each in elsewhere if is_elsewhere(each))):
        text = joined([each for each in group.causes if each.cause.text not in said])
        if text:
            found[text] = (*found.get(text, ()), *group.nodes)
    return [(nodes, text) for text, nodes in found.items()]


def is_elsewhere(group: CauseGroup) -> bool:
    """True for nodes that the pod is not for."""
    return bool(_limited(group))


def _limited(group: CauseGroup) -> tuple[NamedCause, ...]:
    """Return the causes that say that the pod is for other nodes."""
    return tuple(each for each in group.causes if {"nodes", "missing"} <= each.cause.details.keys())


def where(nodes: Sequence[str], named: int = MOST_NODES) -> str:
    """Return "a, b", or "15 nodes (a, b, c …)"."""
    if len(nodes) <= MOST_NODES:
        return ", ".join(nodes)
    return f"{len(nodes)} nodes ({', '.join(nodes[:named])} …)"


def joined(causes: Sequence[NamedCause]) -> str:
    """Return the texts, each once. The taint that a cordoned node has says nothing more."""
    cordoned = any(each.cause.code == "cordoned" for each in causes)
    texts = dict.fromkeys(each.cause.text for each in causes)
    return " · ".join(text for text in texts if not (cordoned and text == CORDON_TAINT))


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
        yield f"Last said{when}{times}: {said.get('reason', '')}: {last_said(answer)}"


def last_said(answer: Answer) -> str:
    """Return the message of the last event, or of the condition."""
    said = answer.waiting.event or answer.waiting.condition or {}
    return str(said.get("note") or said.get("message") or "")
