"""What `stowplan explain` prints for people: one sentence, the causes, the remedies with their commands; then tables.

At 80 columns the answer is in the first ten lines: the sentence, causes, and the best remedy with its command. Causes
that do not fit are in the table of causes, and the commands of further remedies are shown if they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from stowplan.apps.explain import daemon_sets
from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.sentences import (
    MOST_NODES,
    cause_lines,
    cause_rows,
    last_said,
    margin,
    only_after_evictions,
    sentence,
    situation,
    waiting_lines,
    where,
)
from stowplan.apps.explain.shortages import Shortage
from stowplan.apps.explain.texts import counted, in_words, screen_lines, some, wrapped
from stowplan.diagnosis.remedy import DeleteObject, Remedy
from stowplan.engine.explain import GroupExplanation
from stowplan.framework.decision import Decision

SCREEN = 10  # lines that must have the answer
LEAST = 2  # lines of the first cause that are shown in any case
MAX_CAUSES, MAX_REMEDIES, MAX_MEMBERS, MAX_ROWS = 3, 6, 20, 20
MAX_COMMANDS = 3  # of a remedy for pods that have no owner in common
WITH_COMMANDS = 2  # remedies whose commands are shown without being asked for
CERTAIN = "terminating-pods"  # a wait that is sure to end


def show(console: Console, answer: Answer, *, all_remedies: bool = False, above: int = 0) -> None:
    """Print the whole answer about one pod, or about several that are alike. `above`: lines that are printed before."""
    first = situation(answer)
    if first:
        _print(console, first)
    whole = _show_causes(console, answer, above + len(wrapped(first, console.width)))
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
    show_lacking(console, lacking)
    for at, answer in enumerate(daemon_sets.together(answers)):
        if at or lacking:
            console.print()
        show(console, answer, all_remedies=all_remedies)


def show_lacking(console: Console, lacking: Sequence[Shortage]) -> None:
    """Print the workloads that cannot create their pods, with the commands that would let them."""
    for each in lacking:
        _print(console, each.sentence)
        for command in each.commands:
            console.print(f"     {command}", soft_wrap=True)


def _print(console: Console, text: str, indent: int = 0, hang: int = 0) -> None:
    """Print a text, wrapped between words. Commands are never wrapped: they are copied."""
    console.print("\n".join(wrapped(text, console.width, indent, hang)), soft_wrap=True)


def _show_causes(console: Console, answer: Answer, above: int) -> bool:
    """Print the sentence, and as many causes as leave room for the best remedy. True if these are all."""
    told, causes = wrapped(sentence(answer), console.width, hang=0), _short_causes(answer, console.width)
    console.print("\n".join(told), soft_wrap=True)
    left = SCREEN - above - len(told) - _first_help(answer, console.width)
    shown, cut = 0, False
    if causes and len(causes[0]) > max(left - (len(causes) > 1), LEAST):
        causes[0], cut = _cut(causes[0], max(left - (len(causes) > 1), LEAST), console.width), True
    for at, lines in enumerate(causes):
        is_last = at + 1 == len(causes)
        takes_no_more_room = is_last and len(lines) == 1  # than the line that says what is left out
        if not takes_no_more_room and (at == MAX_CAUSES or (at and len(lines) + (not is_last) > left)):
            break
        console.print("\n".join(lines), soft_wrap=True)
        shown, left = shown + 1, left - len(lines)
    if shown < len(causes):
        console.print(f"  … and {counted(len(causes) - shown, 'more group')} of nodes, below")
    return shown == len(causes) and not cut


def _cut(lines: list[str], most: int, width: int) -> list[str]:
    """Return the first lines, with a sign that this is not all."""
    words = lines[most - 1][: width - 2].rsplit(" ", 1)[0] if len(lines[most - 1]) > width - 2 else lines[most - 1]
    return [*lines[: most - 1], f"{words} …"]


def _short_causes(answer: Answer, width: int) -> list[list[str]]:
    """Return the lines of each cause. Of many nodes as many are named as take no further line, and one at least."""
    ways = ([wrapped(line, width, 2) for line in cause_lines(answer, named)] for named in range(MOST_NODES, 0, -1))
    return [min(same, key=len) for same in zip(*ways, strict=True)]


def _first_help(answer: Answer, width: int) -> int:
    """Return how many lines take the waits that are certain and the best remedy, with the line above it."""
    waits = sum(len(wrapped(text, width)) for text in _certain_waits(answer))
    if not answer.diagnosis.remedies:
        return waits
    remedy = answer.diagnosis.remedies[0]
    first = [
        *_remedy_lines(1, remedy, answer, width),
        *_command_lines(_few(answer.commands[0], answer)),
        *_further_lines(remedy, width),
    ]
    return waits + 1 + sum(screen_lines(line, width) for line in first)


def _certain_waits(answer: Answer) -> list[str]:
    """Return what helps without a change, and is sure to come."""
    return [_capital(wait.text) for wait in answer.diagnosis.waits if wait.code == CERTAIN]


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _show_remedies(console: Console, answer: Answer, *, all_remedies: bool) -> None:
    """Print waits that are certain, then the remedies: the best with their commands, the others in one line each."""
    for text in _certain_waits(answer):
        _print(console, text)
    found = list(zip(answer.diagnosis.remedies, answer.commands, strict=True))
    if found:
        console.print("Remedies, each tried:" if len(found) > 1 else "Remedy, tried:")
    for number, (remedy, commands) in enumerate(found if all_remedies else found[:MAX_REMEDIES], 1):
        lines = _remedy_lines(number, remedy, answer, console.width)
        if all_remedies or number <= WITH_COMMANDS:
            lines += _command_lines(commands if all_remedies else _few(commands, answer))
            lines += _further_lines(remedy, console.width)
        for line in lines:
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


def _remedy_lines(number: int, remedy: Remedy, answer: Answer, width: int) -> list[str]:
    return wrapped(f"{number}. {remedy.text}{_outcome(remedy, answer.tried_for)}", width, 2, 3)


def _command_lines(commands: Sequence[str]) -> list[str]:
    return [f"     {command}" if "\n" not in command else command for command in commands]


def _further_lines(remedy: Remedy, width: int) -> list[str]:
    return [line for each in remedy.also for line in wrapped(each, width, 5, 0)]


def _show_prospects(console: Console, answer: Answer) -> None:
    """Print what is on its way, and what was not searched."""
    found = answer.diagnosis
    for wait in found.waits:
        if wait.code != CERTAIN:
            _print(console, _wait(wait.text, instead=bool(found.remedies)))
    if found.never:
        _print(console, f"As it is, it never fits: {found.never}.")
    if not found.remedies and not found.waits and not found.never:
        console.print("No remedy was found.")
    if found.bounded:
        _print(console, f"Not all was searched: {found.bounded}.")


def _wait(text: str, *, instead: bool) -> str:
    until = text.removeprefix("wait until ")
    told = f"wait until {until}" if until != text else f"wait: {text}"
    return f"Or {told}." if instead else _capital(told)


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
    refused = explanation.because and explanation.group is None  # by the API server; the sentence has its words
    told = last_said(answer) == explanation.why_not
    if answer.node is None and explanation.why_not and not answer.serving.absent and not refused and not told:
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


def _table(*heads: str, title: str | None = None) -> Table:
    """Return a table whose cells are never cut: names that are too long go on in the next line."""
    table = Table(title=title)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _causes(answer: Answer) -> Table:
    table = _table("nodes", "because", title="causes")
    for nodes, text in cause_rows(answer):
        table.add_row(where(nodes), text)
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
    """Return the scores of nodes. What all nodes score alike decides nothing: it is below the table, with its part."""
    rows = sorted(decision.trail.scored(), key=lambda row: (-row[2], row[0] != decision.node, row[0]))
    weights = {name: weight for name, (weight, _) in decision.trail.scores.items()}
    alike = [name for name in weights if len(rows) > 1 and len({each[name] for _, each, _ in rows}) == 1]
    parts = ((name, rows[0][1][name] * weights[name]) for name in alike)
    told = ", ".join(f"{name} (+{part})" if part else name for name, part in parts)
    caption = f"the same score on all nodes: {told}" if alike else None
    shown = [name for name in weights if name not in alike]
    table = Table("node", "total", caption=caption)
    for name in shown:
        table.add_column(f"{in_words(name)}\n×{weights[name]}", overflow="fold")
    for row in _grouped((name, (str(total), *(str(each[p]) for p in shown))) for name, each, total in rows):
        table.add_row(*row)
    return table


def _rejections(decision: Decision) -> Table:
    table = _table("node", "rejected by", "because")
    refused = ((name, verdict) for name, verdict in decision.trail.rejections() if verdict is not None)
    for row in _grouped((name, (verdict.plugin, ", ".join(verdict.reasons))) for name, verdict in refused):
        table.add_row(*row)
    return table


def show_all(
    console: Console, answers: Sequence[Answer], elsewhere: int = 0, *, none: str = "", all_remedies: bool = False
) -> None:
    """Print what keeps most of the pods from a node, and one row for each kind; `stowplan explain POD` has the rest.

    elsewhere   pods that are not listed, and take room before these
    none        what is said if there are none
    """
    if not answers:
        _print(console, none)
        return
    answers = daemon_sets.together(answers)
    told = wrapped(_told(answers, elsewhere), console.width, hang=0)
    console.print("\n".join(told), soft_wrap=True)
    lost = [answer for answer in answers if answer.node is None]
    if lost:
        most = max(lost, key=lambda answer: (not only_after_evictions(answer), len(answer.keys)))
        _show_causes(console, most, len(told))
        _show_remedies(console, most, all_remedies=all_remedies)
        if not most.diagnosis.remedies:
            _show_prospects(console, most)
    table = _table("namespace", "pod", "node", "why")
    for answer in answers:
        table.add_row(answer.pod.namespace, _name(answer), _nodes(answer), _why(answer))
    console.print(table)
    if lost:
        console.print("With commands and scores: stowplan explain POD|deploy/NAME -n NAMESPACE")


def _told(answers: Sequence[Answer], elsewhere: int) -> str:
    """Return how many pods get a node, in one sentence."""
    number = sum(len(answer.keys) for answer in answers)
    pods, others = counted(number, "pending pod"), f" with {counted(elsewhere, 'other')}" if elsewhere else ""
    order = f", judged in queue order{others}" if number + elsewhere > 1 else ""
    failed = _failed(answers, pods, "would get no node")
    if failed:
        return f"{failed}{order}."
    return f"All {pods} would get a node{order}." if number > 1 else f"{pods} would get a node{order}."


def _failed(answers: Sequence[Answer], pods: str, verb: str) -> str:
    """Return how many have no node, and how many only after evictions; empty if all have one."""
    evicting = sum(len(answer.keys) for answer in answers if only_after_evictions(answer))
    lost = sum(len(answer.keys) for answer in answers if answer.node is None) - evicting
    if lost:
        return f"{lost} of {pods} {verb}" + (f", {evicting} only after evictions" if evicting else "")
    return f"{evicting} of {pods} would get a node only after evictions" if evicting else ""


def _nodes(answer: Answer) -> str:
    evicted = answer.evictions
    if evicted is not None and only_after_evictions(answer):
        return some(sorted(set(evicted.nodes.values())))
    return some(answer.nodes)


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
        lines.append(f"after evicting {some([each.key for each in evicted.victims])}")
    causes = list(cause_lines(answer))
    lines += causes[:MAX_CAUSES]
    if len(causes) > MAX_CAUSES:
        lines.append(f"… and {len(causes) - MAX_CAUSES} more")
    if not lines or answer.explanation.group is not None:
        lines.insert(0, answer.explanation.why_not)
    lines += [f"→ {wait.text}" for wait in answer.diagnosis.waits if wait.code == CERTAIN]
    lines += [f"→ {each.text}{_outcome(each, answer.tried_for)}" for each in answer.diagnosis.remedies[:1]]
    return "\n".join(lines)


def show_in_order(console: Console, answers: Sequence[Answer], *, all_remedies: bool = False) -> None:
    """Print what would happen with manifests: help for pods without a node, then a row for each kind of pods."""
    answers = daemon_sets.together(answers)
    lost = [answer for answer in answers if answer.node is None]
    number = sum(len(answer.keys) for answer in answers)
    failed = _failed(answers, counted(number, "pod"), "would have no node")
    _print(console, f"{failed}." if failed else _all(number))
    for answer in lost:
        show(console, answer, all_remedies=all_remedies, above=1)
    table = _table("pods", "node", "why")
    for answer in answers:
        why = margin(answer.explanation.decision) if answer.node else _why(answer)
        table.add_row(_title(answer), _nodes(answer) or "none", why)
    console.print(table)


def _all(number: int) -> str:
    return "The pod would be scheduled." if number == 1 else f"All {number} pods would be scheduled."


def _title(answer: Answer) -> str:
    owner = answer.owner.key if answer.owner is not None else answer.pod.key
    return answer.pod.key if not answer.alike else f"{len(answer.keys)} of {owner}"
