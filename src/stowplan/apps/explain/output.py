"""What `stowplan explain` prints for people: one sentence, the causes, the remedies with their commands; then tables.

At 80 columns the answer is in the first ten lines: the sentence, causes, and the best remedy with its command. Causes
that do not fit are in the table of causes, and the commands of further remedies are shown if they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.sentences import cause_lines, joined, margin, sentence, waiting_lines, where
from stowplan.apps.explain.shortages import Shortage
from stowplan.apps.explain.texts import counted, screen_lines, some, wrapped
from stowplan.diagnosis.remedy import DeleteObject, Remedy
from stowplan.engine.explain import GroupExplanation
from stowplan.framework.decision import Decision

SCREEN = 10  # lines that must have the answer
MAX_CAUSES, MAX_REMEDIES, MAX_MEMBERS, MAX_ROWS = 3, 6, 20, 20
MAX_COMMANDS = 3  # of a remedy for pods that have no owner in common
WITH_COMMANDS = 2  # remedies whose commands are shown without being asked for


def show(console: Console, answer: Answer, *, all_remedies: bool = False, above: int = 0) -> None:
    """Print the whole answer about one pod, or about several that are alike. `above`: lines that are printed before."""
    if answer.bound_to:
        console.print(f"{answer.pod.key} is on {answer.bound_to}; this is how it would be scheduled now.")
    whole = _show_causes(console, answer, above + bool(answer.bound_to))
    if answer.node is None:
        _show_remedies(console, answer, all_remedies=all_remedies)
        _show_prospects(console, answer)
    for line in waiting_lines(answer):
        console.print(line, soft_wrap=True)
    _show_tables(console, answer, cut=not whole)


def show_named(
    console: Console, answers: Sequence[Answer], lacking: Sequence[Shortage], *, all_remedies: bool = False
) -> None:
    """Print the workloads that cannot create their pods, and the answers about pods."""
    for each in lacking:
        console.print(each.sentence, soft_wrap=True)
        for command in each.commands:
            console.print(f"     {command}", soft_wrap=True)
    for at, answer in enumerate(answers):
        if at or lacking:
            console.print()
        show(console, answer, all_remedies=all_remedies)


def _show_causes(console: Console, answer: Answer, above: int) -> bool:
    """Print the sentence, and as many causes as leave room for the best remedy. True if these are all."""
    told, causes = sentence(answer), list(cause_lines(answer))
    console.print(told, soft_wrap=True)
    left = SCREEN - above - screen_lines(told, console.width) - _first_help(answer, console.width)
    shown = 0
    for line in causes[:MAX_CAUSES]:
        lines = wrapped(line, console.width, 2)
        more = shown + 1 < len(causes)
        if shown and len(lines) + more > left:
            break
        console.print("\n".join(lines), soft_wrap=True)
        shown, left = shown + 1, left - len(lines)
    if shown < len(causes):
        console.print(f"  … and {counted(len(causes) - shown, 'more group')} of nodes, below")
    return shown == len(causes)


def _first_help(answer: Answer, width: int) -> int:
    """Return how many lines the best remedy takes, with the line above it."""
    if not answer.diagnosis.remedies:
        return 0
    first = _remedy_lines(1, answer.diagnosis.remedies[0], _few(answer.commands[0], answer), answer)
    return 1 + sum(screen_lines(line, width) for line in first)


def _show_remedies(console: Console, answer: Answer, *, all_remedies: bool) -> None:
    """Print the remedies: the best with their commands, the others in one line each."""
    found = list(zip(answer.diagnosis.remedies, answer.commands, strict=True))
    if found:
        console.print("Remedies, each tried:" if len(found) > 1 else "Remedy, tried:")
    for number, (remedy, commands) in enumerate(found if all_remedies else found[:MAX_REMEDIES], 1):
        lines = _remedy_lines(number, remedy, commands if all_remedies else _few(commands, answer), answer)
        for line in lines if all_remedies or number <= WITH_COMMANDS else lines[:1]:
            console.print(line, soft_wrap=True)
    hidden = [] if all_remedies else found[WITH_COMMANDS:]
    if len(found) > MAX_REMEDIES and not all_remedies:
        console.print(f"  … and {len(found) - MAX_REMEDIES} more; --all-remedies shows all, with their commands")
    elif any(commands for _, commands in hidden):
        console.print("  --all-remedies shows the commands of all")


def _few(commands: Sequence[str], answer: Answer) -> Sequence[str]:
    """Return the first commands, where there is one for each of many pods."""
    if not answer.tried_for or len(commands) <= MAX_COMMANDS:
        return commands
    return [*commands[:1], f"… and {len(commands) - 1} more like it; --all-remedies shows them"]


def _remedy_lines(number: int, remedy: Remedy, commands: Sequence[str], answer: Answer) -> list[str]:
    return [
        f"  {number}. {remedy.text}{_outcome(remedy, answer.tried_for)}",
        *(f"     {command}" if "\n" not in command else command for command in commands),
        *(f"     {each}" for each in remedy.also),
    ]


def _show_prospects(console: Console, answer: Answer) -> None:
    """Print what is on its way, and what was not searched."""
    found = answer.diagnosis
    for wait in found.waits:
        console.print(f"{'Or wait' if found.remedies else 'Wait'}: {wait.text}.", soft_wrap=True)
    if found.never:
        console.print(f"As it is, it never fits: {found.never}.", soft_wrap=True)
    if not found.remedies and not found.waits and not found.never:
        console.print("No remedy was found.")
    if found.bounded:
        console.print(f"Not all was searched: {found.bounded}.", soft_wrap=True)


def _outcome(remedy: Remedy, tried_for: int = 0) -> str:
    """Return where the pod, or how many pods, would go, and who would be evicted."""
    nodes = list(dict.fromkeys(remedy.nodes.values())) if tried_for > 1 else []
    there = some(nodes) if nodes else remedy.node
    told = f" → {there}" if there is not None else ""
    if tried_for > 1:
        told += f"; {len(remedy.nodes)} of {tried_for} pods" if remedy.nodes else "; tried for one pod"
    deleted = {change.key for change in remedy.changes if isinstance(change, DeleteObject)}
    evicted = [key for key in remedy.evicted if key not in deleted]
    return f"{told}; evicts {some(evicted)}" if evicted else told


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


def show_all(
    console: Console, answers: Sequence[Answer], elsewhere: int = 0, *, place: str = "", all_remedies: bool = False
) -> None:
    """Print what keeps most of the pods from a node, and one row for each kind; `stowplan explain POD` has the rest.

    elsewhere   pods that are not listed, and take room before these
    place       where pods were looked for
    """
    if not answers:
        console.print(f"No pod is pending{place}.")
        return
    number = sum(len(answer.keys) for answer in answers)
    lost = [answer for answer in answers if answer.node is None]
    told = _told(number, sum(len(answer.keys) for answer in lost), elsewhere)
    console.print(told, soft_wrap=True)
    if lost:
        most = max(lost, key=lambda answer: len(answer.keys))
        _show_causes(console, most, screen_lines(told, console.width))
        _show_remedies(console, most, all_remedies=all_remedies)
    table = Table("namespace", "pod", "node", "why")
    for answer in answers:
        table.add_row(answer.pod.namespace, _name(answer), some(answer.nodes), _why(answer))
    console.print(table)
    if lost:
        console.print("With commands and scores: stowplan explain POD|deploy/NAME -n NAMESPACE")


def _told(number: int, lost: int, elsewhere: int) -> str:
    pods, others = counted(number, "pending pod"), f" with {counted(elsewhere, 'other')}" if elsewhere else ""
    order = f", judged in queue order{others}" if number + elsewhere > 1 else ""
    if lost:
        return f"{lost} of {pods} would get no node{order}."
    return f"All {pods} would get a node{order}." if number > 1 else f"{pods} would get a node{order}."


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
    evicted = answer.evictions
    if evicted is not None:
        lines.append(f"evicts {some([each.key for each in evicted.victims])}")
    lines += list(cause_lines(answer))[:MAX_CAUSES]
    if not lines or answer.explanation.group is not None:
        lines.insert(0, answer.explanation.why_not)
    lines += [f"→ {each.text}{_outcome(each, answer.tried_for)}" for each in answer.diagnosis.remedies[:1]]
    return "\n".join(lines)


def show_in_order(console: Console, answers: Sequence[Answer], *, all_remedies: bool = False) -> None:
    """Print what would happen with manifests: help for pods without a node, then a row for each kind of pods."""
    lost = [answer for answer in answers if answer.node is None]
    number = sum(len(answer.keys) for answer in answers)
    failed = sum(len(answer.keys) for answer in lost)
    console.print(f"{failed} of {counted(number, 'pod')} would have no node." if failed else _all(number))
    for answer in lost:
        show(console, answer, all_remedies=all_remedies, above=1)
    table = Table("pods", "node", "why")
    for answer in answers:
        why = margin(answer.explanation.decision) if answer.node else _why(answer)
        table.add_row(_title(answer), some(answer.nodes) or "none", why)
    console.print(table)


def _all(number: int) -> str:
    return "The pod would be scheduled." if number == 1 else f"All {number} pods would be scheduled."


def _title(answer: Answer) -> str:
    owner = answer.owner.key if answer.owner is not None else answer.pod.key
    return answer.pod.key if not answer.alike else f"{len(answer.keys)} of {owner}"
