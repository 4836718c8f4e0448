"""The summary of a run on the screen: within 80 columns, whatever the names are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stowplan.simulation import durations

COLUMNS = 80
LABEL = 11  # columns of a label and its space
NAMESPACES = 10  # the least satisfied ones are shown
NAME = 32  # characters of a name that are shown


def summary_text(told: Mapping[str, Any], out: Path | None = None) -> str:
    """Return the summary of the figures of a run."""
    return "\n".join((*_pods(told), *_nodes(told), *_resources(told), *_fairness(told), *_files(out)))


def _wrapped(label: str, text: str) -> list[str]:
    """Lines of a text beside its label."""
    return textwrap.wrap(text, COLUMNS, initial_indent=f"{label:<{LABEL}}", subsequent_indent=" " * LABEL)


def _pods(told: Mapping[str, Any]) -> Iterator[str]:
    pods, waits, evictions = told["pods"], told["waiting"], told["evictions"]
    yield f"{durations.shown(told['seconds'])} of the cluster, seed {told['seed']}"
    yield ""
    arrived = f"{pods['arrived']:,} arrived, {pods['placed']:,} got a node, {pods['neverPlaced']:,} never did"
    yield from _wrapped("Pods", arrived)
    ends = ", ".join(f"{count:,} {name}" for name, count in pods["atEnd"].items() if count)
    initial = f"; {pods['initial']:,} of all were on nodes at the start" if pods["initial"] else ""
    yield from _wrapped("At the end", f"{ends or 'none'}{initial}")
    if waits["mean"] is not None:
        shown = ", ".join(f"{name} {durations.shown(waits[name])}" for name in ("p50", "p90", "p99", "p100"))
        yield from _wrapped("Waiting", f"mean {durations.shown(waits['mean'])}, {shown}")
    if evictions["pods"]:
        reasons = ", ".join(f"{count:,} {_cut(reason, NAME)}" for reason, count in evictions["byReason"].items())
        yield from _wrapped("Evictions", f"{evictions['pods']:,}: {reasons}")


def _nodes(told: Mapping[str, Any]) -> Iterator[str]:
    nodes, cost = told["nodes"], told["cost"]
    used = f"{nodes['mostUsed']:,} used at most, {nodes['meanUsed']:,.1f} on average"
    yield from _wrapped("Nodes", f"{nodes['atEnd']:,} at the end, {used}")
    if cost["all"] or cost["used"]:
        missing = cost["nodesWithoutPrice"]
        without = f"; {missing:,} nodes had no price and count as 0" if missing else ""
        text = f"{cost['all']:,.2f} for all nodes, {cost['used']:,.2f} while pods were on them{without}"
        yield from _wrapped("Cost", text)


def _resources(told: Mapping[str, Any]) -> Iterator[str]:
    if not told["allocation"]:
        return
    yield ""
    yield f"{'Resource':<{NAME}}  {'allocated':>9}  {'running':>9}  {'fragmented':>10}"
    for name, part in told["allocation"].items():
        fragmented = told["fragmentation"].get(name)
        last = "-" if fragmented is None else f"{fragmented:.1%}"
        yield f"{_cut(name, NAME):<{NAME}}  {part:>9.1%}  {told['utilisation'][name]:>9.1%}  {last:>10}"


def _fairness(told: Mapping[str, Any]) -> Iterator[str]:
    fairness = told["fairness"]
    asked = {name: each for name, each in fairness["namespaces"].items() if each["satisfaction"] is not None}
    if len(asked) < 2:
        return
    yield ""
    yield f"{'Namespace':<{NAME}}  {'pods':>9}  {'got':>9}  {'mean wait':>10}"
    ranked = sorted(asked.items(), key=lambda each: (each[1]["satisfaction"], each[0]))
    for name, each in ranked[:NAMESPACES]:
        wait = "-" if each["meanWait"] is None else durations.shown(each["meanWait"])
        yield f"{_cut(name, NAME):<{NAME}}  {each['pods']:>9,}  {each['satisfaction']:>9.1%}  {wait:>10}"
    if len(ranked) > NAMESPACES:
        yield f"and {len(ranked) - NAMESPACES:,} more namespaces"
    yield f"Fairness (Jain's index): {fairness['index']:.3f}"


def _files(out: Path | None) -> Iterator[str]:
    if out is not None:
        yield ""
        yield "Written: summary.json, series.jsonl and pods.jsonl, in"
        yield f"  {out}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}~"
