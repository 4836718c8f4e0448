"""What `stowplan what-if` prints for people: one sentence, why pods wait, then tables of pods and of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.table import Table

from stowplan.apps.explain import output as explain_output
from stowplan.apps.explain.texts import counted, some, wrapped
from stowplan.apps.what_if.answer import BECAUSE, WhatIfAnswer
from stowplan.simulation.node_fill import NodeFill
from stowplan.simulation.pod_effects import WorkloadRef

MOST_ROWS, MOST_EXPLAINED, MOST_BLOCKED = 20, 5, 10


def show(console: Console, answer: WhatIfAnswer, *, all_remedies: bool = False) -> None:
    """Print the answer."""
    _print(console, _sentence(answer))
    for each in answer.answers[:MOST_EXPLAINED]:
        explain_output.show(console, each, all_remedies=all_remedies, above=1)
    if len(answer.answers) > MOST_EXPLAINED:
        console.print(f"… and {len(answer.answers) - MOST_EXPLAINED} more kinds of pods that wait; -o json has all")
    for line in _blocked(answer):
        _print(console, line, 2 if line.startswith("  ") else 0)
    rows = [*_moved(answer), *_waiting(answer), *_started(answer), *_gone(answer)]
    if rows:
        console.print(_table(("pods", "from", "to", "because"), rows))
    nodes = list(_nodes(answer))
    if nodes:
        console.print(_table(("node", "cpu", "memory", "pods"), nodes))


def notes(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield what is to be said on standard error."""
    if answer.made:
        were = "was" if answer.made == 1 else "were"
        yield f"{counted(answer.made, 'controller')} of pods {were} not among what was read, and made from its pods."
    if answer.effects.pending:
        are = "waits" if answer.effects.pending == 1 else "wait"
        yield f"{counted(answer.effects.pending, 'pod')} {are} for a node without the changes, too."
    if answer.unseen:
        yield f"Not seen, for lack of rights: {', '.join(answer.unseen)}."


def _print(console: Console, text: str, indent: int = 0) -> None:
    console.print("\n".join(wrapped(text, console.width, indent, 2 if indent else 0)), soft_wrap=True)


def _sentence(answer: WhatIfAnswer) -> str:
    found = answer.effects
    intended = len(found.gone) - len(found.lost)
    parts = [
        (len(found.moved), "moves", "move"),
        (len(found.waiting), "waits for a node", "wait for a node"),
        (len(found.started), "starts", "start"),
        (len(found.lost), "is lost", "are lost"),
        (intended, "ends", "end"),
        (len(answer.blocked), "cannot be evicted", "cannot be evicted"),
    ]
    told = [f"{counted(number, 'pod')} {one if number == 1 else more}" for number, one, more in parts if number]
    return f"{', '.join(told)}." if told else "No pod moves, starts or waits."


def _blocked(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield the pods that a drain cannot evict."""
    if not answer.blocked:
        return
    yield "The drain does not end: kubectl would try these evictions again and again."
    for each in answer.blocked[:MOST_BLOCKED]:
        yield f"  {each.pod} on {each.node}: {each.message}"
    if len(answer.blocked) > MOST_BLOCKED:
        yield f"  … and {len(answer.blocked) - MOST_BLOCKED} more; -o json has all"


Row = tuple[str, ...]


def _moved(answer: WhatIfAnswer) -> list[Row]:
    found = ((each.workload, each.before.name, each.before.node_name, each.to or "", BECAUSE[each.gone_by])
             for each in answer.effects.moved)  # fmt: skip
    return _grouped(found)


def _waiting(answer: WhatIfAnswer) -> list[Row]:
    effects, found = answer.effects, []
    for pod in effects.waiting:
        old = effects.replaced.get(pod.uid)
        name, node, because = (pod.name, "", "new") if old is None else (
            old.before.name, old.before.node_name, BECAUSE[old.gone_by]
        )  # fmt: skip
        found.append((effects.workloads[pod.uid], name, node, "waits", because))
    return _grouped(found)


def _started(answer: WhatIfAnswer) -> list[Row]:
    workloads = answer.effects.workloads
    return _grouped((workloads[each.uid], each.name, "", each.node_name, "starts") for each in answer.effects.started)


def _gone(answer: WhatIfAnswer) -> list[Row]:
    return _grouped(
        (
            each.workload, each.pod.name, each.pod.node_name, "lost" if each.lost else "ends",
            f"{BECAUSE[each.gone_by]}; nobody makes it again" if each.lost else BECAUSE[each.gone_by],
        )
        for each in answer.effects.gone
    )  # fmt: skip


def _grouped(found: Iterable[tuple[WorkloadRef, str, str, str, str]]) -> list[Row]:
    """Return one row for the pods of a workload that come from one node for one reason, with all their new nodes."""
    groups: dict[tuple[WorkloadRef, str, str], tuple[list[str], Counter[str]]] = {}
    for workload, name, before, after, because in found:
        names, to = groups.setdefault((workload, before, because), ([], Counter()))
        names.append(name)
        to[after] += 1
    return [
        (_pods(workload, names), before, some(_with_numbers(to), 5), because)
        for (workload, before, because), (names, to) in groups.items()
    ]


def _pods(workload: WorkloadRef, names: list[str]) -> str:
    if workload.kind == "Pod":
        return workload.key
    return f"{len(names)} of {workload.name}" if len(names) > 1 else f"{names[0]} of {workload.name}"


def _with_numbers(to: Counter[str]) -> list[str]:
    told = len(to) > 1  # otherwise the number is said already
    return [f"{name} ({number})" if told and number > 1 else name for name, number in sorted(to.items())]


def _nodes(answer: WhatIfAnswer) -> Iterator[Row]:
    """Yield how full nodes are before and after, those that changed."""
    for name in answer.changed_nodes:
        before, after = answer.before.get(name), answer.after.get(name)
        cordoned = after is not None and after.unschedulable and not (before is not None and before.unschedulable)
        freed = before is not None and before.unschedulable and not (after is not None and after.unschedulable)
        told = ", cordoned" if cordoned else ", uncordoned" if freed and after is not None else ""
        told += ", new" if before is None else ", gone" if after is None else ""
        yield (
            f"{name}{told}",
            _side_by_side(before, after, lambda fill: f"{fill.part('cpu'):.0%}"),
            _side_by_side(before, after, lambda fill: f"{fill.part('memory'):.0%}"),
            _side_by_side(before, after, lambda fill: f"{fill.requested.get('pods', 0)}"),
        )


def _side_by_side(before: NodeFill | None, after: NodeFill | None, shown: Callable[[NodeFill], str]) -> str:
    old, new = (None if fill is None else shown(fill) for fill in (before, after))
    if old is None or new is None:
        return f"→ {new}" if old is None else f"{old} →"
    return old if old == new else f"{old} → {new}"


def _table(heads: Row, rows: list[Row]) -> Table:
    table = Table()
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows[:MOST_ROWS]:
        table.add_row(*row)
    if len(rows) > MOST_ROWS:
        table.add_row(f"… and {len(rows) - MOST_ROWS} more; -o json has all")
    return table
