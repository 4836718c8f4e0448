"""The page: all parts of a report in one text of HTML, with a policy that forbids every request.

Names and texts come from clusters and files, so they are escaped wherever they are written. The only script is ours, by
its hash: a browser runs no other, even if one should get in.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape

from stowplan.simulation import durations
from stowplan.simulation.report import fill_bands
from stowplan.simulation.report.configuration_difference import configurations
from stowplan.simulation.report.curves import curves, length_of, resources_of, short
from stowplan.simulation.report.figure_table import exact, figure_table, money, namespace_table, percent, whole
from stowplan.simulation.report.heat_map import heat_map
from stowplan.simulation.report.heat_map_script import SCRIPT
from stowplan.simulation.report.page_style import STYLE
from stowplan.simulation.report.pending_plot import most_pending, pending_by_cause
from stowplan.simulation.report.plots import COLOURS
from stowplan.simulation.report.report_run import ReportRun

WORDS = (
    ("Requested", "What pods ask for in their requests. What their containers would really use is not known."),
    (
        "Free, but too scattered",
        "Of what is free, the part on nodes where a pod does not fit, for the pods of this run. "
        "0%: all of them fit wherever something is free.",
    ),
    (
        "Cause",
        "Why the last attempt at a pod found no node, in the scheduler's words. If a pod may not use most nodes and "
        "the others are full, the cause is that these are full.",
    ),
    (
        "Fairness",
        "Jain's index of what each namespace got of what it asked for, over time. 1: all got the same part.",
    ),
)


def html(runs: Sequence[ReportRun], title: str = "Simulation report") -> str:
    """Return the page of one run, or of several that are compared with the first."""
    whole = "\n".join((*_head(runs, title), *parts(runs), f"<script>{SCRIPT}</script></body></html>\n"))
    # Only U+0000 and lone surrogates cannot be in a page.
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def parts(runs: Sequence[ReportRun]) -> Iterator[str]:
    """Yield all between the title and the script: the figures, and what is drawn."""
    shown = runs[:COLOURS]
    yield from _figures(runs)
    yield from _curves(shown)
    yield from _pending(shown)
    yield from _nodes(shown)
    yield from _tail(runs)


def policy() -> str:
    """Return the Content-Security-Policy: nothing is loaded, and only our own script and style count."""
    script, style = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (SCRIPT, STYLE))
    own = f"script-src 'sha256-{script}'; style-src 'sha256-{style}'"
    return f"default-src 'none'; {own}; img-src data:; base-uri 'none'; form-action 'none'"


def _head(runs: Sequence[ReportRun], title: str) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{STYLE}</style></head><body>'
    nodes = max(run.figures["nodes"]["most"] for run in runs)
    what = f"{durations.shown(length_of(runs))} of a cluster with up to {nodes:,} nodes, in virtual time"
    yield f'<h1>{escape(title)}</h1><p class="intro">{what}.</p>'


def _figures(runs: Sequence[ReportRun]) -> Iterator[str]:
    if len(runs) == 1:
        yield tiles(runs[0])
    else:
        yield f"<h2>{len(runs)} runs compared</h2>{figure_table(runs)}"
        yield f'<p class="note">Differences are to the first run ({escape(runs[0].name)}).</p>'
        if len(runs) > COLOURS:
            yield f'<p class="note">Below are the first {COLOURS} runs.</p>'


def tiles(run: ReportRun) -> str:
    """Return the few figures that matter most."""
    told = run.figures
    pods, waits, nodes = told["pods"], told["waiting"], told["nodes"]
    found = [("Pods that got a node", f"{pods['placed']:,}", f"of {pods['arrived']:,}")]
    if waits["mean"] is not None:
        found.append(("Half of them waited at most", durations.shown(waits["p50"]), ""))
        found.append(("99% waited at most", durations.shown(waits["p99"]), ""))
    for name in resources_of([run])[:2]:
        found.append((f"Requested {short(name)}", percent(told["allocation"][name]), "on average"))
    found.append(("Nodes with a pod", exact(nodes["meanUsed"]), f"of {nodes['most']:,} on average"))
    if told["cost"]["all"]:
        cost = told["cost"]["all"]
        found.append(("Cost of all nodes", whole(cost) if cost >= 1000 else money(cost), ""))
    shown = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{value} <small>{escape(unit)}</small></dd></div>"
        for label, value, unit in found
    )
    return f'<dl class="tiles">{shown}</dl>'


def _curves(runs: Sequence[ReportRun]) -> Iterator[str]:
    if not any(run.series for run in runs):
        return
    yield '<h2>Over time</h2><div class="plots" id="curves">'
    yield from curves(runs)
    yield "</div>"


def _pending(runs: Sequence[ReportRun]) -> Iterator[str]:
    yield '<h2>Pods that wait, by cause</h2><div id="causes">'
    length, highest = length_of(runs), most_pending(runs)
    for run in runs:
        yield pending_by_cause(run, run.name if len(runs) > 1 else "Pods without a node", length, highest)
    yield "</div>"


def _nodes(runs: Sequence[ReportRun]) -> Iterator[str]:
    yield "<h2>How full the nodes are</h2>"
    if any(run.fill.nodes for run in runs):
        yield "<p>A node counts by its fullest resource.</p>"
        yield '<div id="bands">'
        length, nodes = length_of(runs), max(run.figures["nodes"]["most"] for run in runs)
        for run in runs:
            yield fill_bands.band_plot(run, run.name if len(runs) > 1 else "Nodes by how full they are", length, nodes)
        yield "</div>"
    yield f"<h3>Node by node</h3>{heat_map(runs)}"


def _tail(runs: Sequence[ReportRun]) -> Iterator[str]:
    if len(runs) == 1:
        yield f'<h2>Figures</h2><div class="beside top">{figure_table(runs)}{namespace_table(runs[0])}</div>'
    yield '<h2>Configuration</h2><div id="configuration">'
    yield from configurations(runs)
    words = "".join(f"<div><dt>{word}</dt><dd>{escape(meaning)}</dd></div>" for word, meaning in WORDS)
    yield f'</div><h2>What the words mean</h2><dl class="words">{words}</dl>'
