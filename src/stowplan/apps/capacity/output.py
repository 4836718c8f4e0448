"""What `stowplan capacity` prints for people: the number, what stops the next pod, the nodes, the nodes to add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from stowplan.apps.capacity.answer import ALL_WANTED, AT_MAX, NO_NODE, CapacityAnswer, TemplateAnswer
from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.sentences import cause_lines
from stowplan.apps.explain.texts import counted, some, wrapped

MOST_ROWS, MOST_NAMED = 10, 3


def show(console: Console, answer: CapacityAnswer, *, verbose: bool = False) -> None:
    """Print the answer. `verbose`: with every node that takes a pod."""
    _print(console, _sentence(answer))
    for line in _stop(answer):
        _print(console, line, 2 if line.startswith("  ") else 0)
    if answer.by_node:
        console.print(_table(answer.by_node, verbose=verbose))
    for each in answer.templates:
        for line in _template(each, answer):
            _print(console, line, 2 if line.startswith("  ") else 0)


def notes(answer: CapacityAnswer) -> Iterator[str]:
    """Yield what is to be said on standard error."""
    if answer.pending:
        are = "waits" if answer.pending == 1 else "wait"
        yield f"{counted(answer.pending, 'pod')} of the cluster {are} for a node, and may take room before these."
    if answer.not_asked:
        yield f"Not asked: the extenders {', '.join(answer.not_asked)}. They may reject nodes or change scores."
    if answer.unseen:
        yield f"Not seen, for lack of rights: {', '.join(answer.unseen)}."


def _print(console: Console, text: str, indent: int = 0) -> None:
    console.print("\n".join(wrapped(text, console.width, indent, 2 if indent else 0)), soft_wrap=True)


def _sentence(answer: CapacityAnswer) -> str:
    name, fits = answer.question.name, f"{answer.fits:,}"
    like = f"like {name}" if answer.question.kind == "Pod" else f"of {name}"
    if answer.stop.reason == ALL_WANTED:
        return f"All {fits} pods {like} fit." if answer.fits > 1 else f"One pod {like} fits."
    if answer.stop.reason == AT_MAX:
        return f"At least {fits} more {_pods(answer.fits)} {like} fit."
    wanted = "" if answer.wanted is None else f"; {answer.wanted:,} {'is' if answer.wanted == 1 else 'are'} wanted"
    if not answer.fits:
        return f"No pod {like} fits{wanted}."
    return f"{fits} more {_pods(answer.fits)} {like} {'fits' if answer.fits == 1 else 'fit'}{wanted}."


def _pods(number: int) -> str:
    return "pod" if number == 1 else "pods"


def _stop(answer: CapacityAnswer) -> Iterator[str]:
    """Yield what stops the next pod."""
    stop = answer.stop
    if stop.cause is not None:
        yield f"The API server refuses the next one: {stop.cause.text}."
    if stop.reason == NO_NODE and stop.answer is not None:
        yield f"The next one has no node: {_none(stop.answer)}"
        yield from (f"  {line}" for line in cause_lines(stop.answer))


def _none(answer: Answer) -> str:
    decision = answer.explanation.decision
    if decision.error:
        return "a plugin fails."
    if decision.gated is not None:
        return f"it is gated: {', '.join(decision.gated.reasons)}."
    known = decision.trail.total
    if known == 0:
        return "the cluster has none."
    return f"none of {known:,} nodes can take it." if known > 1 else "the only node cannot take it."


def _table(by_node: Counter[str], *, verbose: bool) -> Table:
    table = Table()
    table.add_column("node", overflow="fold")
    table.add_column("pods", justify="right")
    rows = list(by_node.items())
    shown = rows if verbose else rows[:MOST_ROWS]
    for name, number in shown:
        table.add_row(name, f"{number:,}")
    if len(rows) > len(shown):
        rest = sum(number for _, number in rows[len(shown) :])
        table.add_row(f"{len(rows) - len(shown):,} more, --verbose names them", f"{rest:,}")
    return table


def _template(found: TemplateAnswer, answer: CapacityAnswer) -> Iterator[str]:
    """Yield how many nodes of a template are needed."""
    wanted = 1 if answer.wanted is None else answer.wanted
    pods, needed = f"{'the pod' if wanted == 1 else f'all {wanted:,} pods'}", found.needed
    if needed.number == 0:
        yield f"With nodes like {found.name}: no node is needed, {pods} fit{'s' if wanted == 1 else ''} as it is."
    elif needed.number is not None:
        more = f"{needed.number:,} more {'node' if needed.number == 1 else 'nodes'}"
        yield f"With nodes like {found.name}: {more} for {pods}."
    else:
        yield f"With nodes like {found.name}: no number is enough, {needed.placed:,} of {wanted:,} pods fit."
        if found.failed is not None:
            yield from (f"  {line}" for line in cause_lines(found.failed))
    if found.daemon_sets and needed.number != 0:
        sets = "DaemonSet" if len(found.daemon_sets) == 1 else "DaemonSets"
        yield f"  each has a pod of {sets} {some(list(found.daemon_sets), MOST_NAMED)}, too"
