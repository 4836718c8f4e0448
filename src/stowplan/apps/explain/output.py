"""What `stowplan explain` prints for people: one sentence, the causes, the remedies with their commands; then tables.

At 80 columns the answer is in the first ten lines: long causes are shortened there, and whole in the table of causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.sentences import cause_lines, joined, margin, sentence, waiting_lines, where
from stowplan.apps.explain.texts import counted, shortened, some
from stowplan.diagnosis.remedy import DeleteObject, Remedy
from stowplan.engine.explain import GroupExplanation
from stowplan.framework.decision import Decision

MAX_CAUSES, MAX_REMEDIES, MAX_MEMBERS, MAX_ROWS = 3, 6, 20, 20


def show(console: Console, answer: Answer) -> None:
    """Print the whole answer about one pod, or about several that are alike."""
    if answer.bound_to:
        console.print(f"{answer.pod.key} is on {answer.bound_to}; this is how it would be scheduled now.")
    console.print(sentence(answer), soft_wrap=True)
    causes = list(cause_lines(answer))
    for line in causes[:MAX_CAUSES]:
        console.print(f"  {shortened(line, console.width - 2)}")
    if len(causes) > MAX_CAUSES:
        console.print(f"  … and {counted(len(causes) - MAX_CAUSES, 'more group')} of nodes, below")
    if answer.node is None:
        _show_help(console, answer)
    for line in waiting_lines(answer):
        console.print(line, soft_wrap=True)
    cut = len(causes) > MAX_CAUSES or any(len(line) > console.width - 2 for line in causes)
    _show_tables(console, answer, cut=cut)


def _show_help(console: Console, answer: Answer) -> None:
    """Print the remedies with their commands, what is on its way, and what was not searched."""
    found = answer.diagnosis
    if found.remedies:
        console.print("Remedies, each tried:" if len(found.remedies) > 1 else "Remedy, tried:")
    shown = list(zip(found.remedies, answer.commands, strict=True))[:MAX_REMEDIES]
    for number, (remedy, commands) in enumerate(shown, 1):
        console.print(f"  {number}. {remedy.text}{_outcome(remedy)}", soft_wrap=True)
        for command in commands:
            console.print(f"     {command}" if "\n" not in command else command, soft_wrap=True)
        for each in remedy.also:
            console.print(f"     {each}", soft_wrap=True)
    if len(found.remedies) > MAX_REMEDIES:
        console.print(f"  … and {len(found.remedies) - MAX_REMEDIES} more; -o json has all")
    for wait in found.waits:
        console.print(f"{'Or wait' if found.remedies else 'Wait'}: {wait.text}.", soft_wrap=True)
    if found.never:
        console.print(f"As it is, it never fits: {found.never}.", soft_wrap=True)
    if not found.remedies and not found.waits and not found.never:
        console.print("No remedy was found.")
    if found.bounded:
        console.print(f"Not all was searched: {found.bounded}.", soft_wrap=True)


def _outcome(remedy: Remedy) -> str:
    """Return where the pod would go, and who would be evicted."""
    node = f" → {remedy.node}" if remedy.node is not None else ""
    deleted = {change.key for change in remedy.changes if isinstance(change, DeleteObject)}
    evicted = [key for key in remedy.evicted if key not in deleted]
    return f"{node}; evicts {some(evicted)}" if evicted else node


def _show_tables(console: Console, answer: Answer, *, cut: bool) -> None:
    explanation, decision = answer.explanation, answer.explanation.decision
    if answer.node is None and explanation.why_not and not answer.serving.absent:
        console.print(f"The scheduler says: {explanation.why_not}", soft_wrap=True)
    if answer.serving.absent or decision.gated is not None:
        return
    if explanation.group is not None:
        console.print(_members(explanation.group))
    if answer.diagnosis.groups and cut:
        console.print(_causes(answer))
    if decision.node is not None:
        console.print(_scores(decision))
    if decision.trail.verdicts and not answer.diagnosis.groups:
        console.print(_rejections(decision))


def _causes(answer: Answer) -> Table:
    table = Table("nodes", "because", title="causes")
    for group in answer.diagnosis.groups:
        named = some(group.nodes) if len(group.nodes) > 1 else ""
        table.add_row(f"{where(group)}\n{named}".rstrip(), joined(group.causes))
    return table


def _members(group: GroupExplanation) -> Table:
    """Return the pods of a group that were attempted."""
    found = sum(node is not None for node in group.nodes.values())
    caption = f"pod group {group.name}: {found} of {len(group.nodes)} pods found a node, {group.needed} needed"
    table = Table("pod", "node, together with the others", caption=caption)
    for key, node in list(group.nodes.items())[:MAX_MEMBERS]:
        table.add_row(key, node or "none")
    if len(group.nodes) > MAX_MEMBERS:
        table.add_row("…", f"and {len(group.nodes) - MAX_MEMBERS} more; -o json has all")
    return table


def _grouped(rows: Iterable[tuple[str, tuple[str, ...]]], most: int = MAX_ROWS) -> list[tuple[str, ...]]:
    """Return rows with their names: identical rows are one, with the number of names."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, row in rows:
        alike.setdefault(row, []).append(name)
    found = [(names[0] if len(names) == 1 else f"{len(names)}: {some(names)}", *row) for row, names in alike.items()]
    more = [(f"… and {len(found) - most} more; -o json has all",)] if len(found) > most else []
    return [*found[:most], *more]


def _scores(decision: Decision) -> Table:
    weights = {name: weight for name, (weight, _) in decision.trail.scores.items()}
    table = Table("node", "total", *(f"{name} ×{weight}" for name, weight in weights.items()))
    rows = sorted(decision.trail.scored(), key=lambda row: (-row[2], row[0] != decision.node, row[0]))
    for row in _grouped((name, (str(total), *(str(each[p]) for p in weights))) for name, each, total in rows):
        table.add_row(*row)
    return table


def _rejections(decision: Decision) -> Table:
    table = Table("node", "rejected by", "because")
    refused = ((name, verdict) for name, verdict in decision.trail.rejections() if verdict is not None)
    for row in _grouped((name, (verdict.plugin, ", ".join(verdict.reasons))) for name, verdict in refused):
        table.add_row(*row)
    return table


def show_all(console: Console, answers: Sequence[Answer]) -> None:
    """Print one row for each answer, and below it the first remedy; `stowplan explain POD` has the whole answer."""
    if not answers:
        console.print("No pod is pending.")
        return
    number = sum(len(answer.keys) for answer in answers)
    lost = sum(len(answer.keys) for answer in answers if answer.node is None)
    console.print(_told(number, lost))
    table = Table("namespace", "pod", "node", "why")
    for answer in answers:
        table.add_row(answer.pod.namespace, _name(answer), answer.node or "", _why(answer))
    console.print(table)
    if lost:
        console.print("With commands and scores: stowplan explain POD -n NAMESPACE")


def _told(number: int, lost: int) -> str:
    pods = counted(number, "pending pod")
    return f"{lost} of {pods} would get no node." if lost else f"{pods}: each would get a node."


def _name(answer: Answer) -> str:
    if not answer.alike:
        return answer.pod.name
    if answer.owner is None:
        return f"{answer.pod.name} and {len(answer.alike)} alike"
    return f"{len(answer.keys)} of {answer.owner.kind.lower()}/{answer.owner.key.rpartition('/')[2]}"


def _why(answer: Answer) -> str:
    if answer.node is not None:
        return margin(answer.explanation.decision)
    lines = [answer.serving.text] if answer.serving.absent else []
    evicted = answer.explanation.evictions
    if evicted is not None:
        lines.append(f"evicts {some([each.key for each in evicted.victims])}")
    lines += list(cause_lines(answer))[:MAX_CAUSES]
    if not lines or answer.explanation.group is not None:
        lines.insert(0, answer.explanation.why_not)
    lines += [f"→ {each.text}{_outcome(each)}" for each in answer.diagnosis.remedies[:1]]
    return "\n".join(lines)


def show_in_order(console: Console, answers: Sequence[Answer]) -> None:
    """Print what would happen with manifests: a row for each kind of pods and node, then help for those without one."""
    table = Table("pods", "node", "why")
    for name, node, why in _in_order(answers):
        table.add_row(name, node, why)
    lost = [answer for answer in answers if answer.node is None]
    number = sum(len(answer.keys) for answer in answers)
    failed = sum(len(answer.keys) for answer in lost)
    told = f"{failed} of {counted(number, 'pod')} would have no node." if failed else _all(number)
    console.print(told)
    for answer in lost:
        show(console, answer)
    console.print(table)


def _all(number: int) -> str:
    return "The pod would be scheduled." if number == 1 else f"All {number} pods would be scheduled."


def _in_order(answers: Sequence[Answer]) -> list[tuple[str, str, str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    whys: dict[tuple[str, str], str] = {}
    for answer in answers:
        owner = answer.owner.key if answer.owner is not None else answer.pod.key
        key = (owner, answer.node or "none")
        rows.setdefault(key, []).extend(answer.keys)
        whys.setdefault(key, margin(answer.explanation.decision) if answer.node else _why(answer))
    return [
        (keys[0] if len(keys) == 1 else f"{len(keys)} of {owner}", node, whys[owner, node])
        for (owner, node), keys in rows.items()
    ]
