"""What `stowplan shadow` prints: a line or a JSON object per difference, a running count, and the sum at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import click

from stowplan.apps.explain.texts import counted
from stowplan.shadow.verdict import DIFFERENT, PENDING_HERE, PENDING_THERE, RACE, SAME, SAMPLED, TIE, ShadowVerdict

UNTOLD = (SAME,)  # even with --all
ROW = "{:<8}  {:<13}  {:<40}  {:<24}  {:<24}  {}"
HEAD = ROW.format("TIME", "KIND", "POD", "THERE", "HERE", "WHY")
WIDTH = 79


class ShadowOutput:
    """`out`: a file for the JSON objects. `since`: what must be added to a verdict's time to get that of the day."""

    def __init__(self, output: str, out: TextIO | None, *, everything: bool, since: float) -> None:
        self._json, self._out, self._everything, self._since = output == "json", out, everything, since
        self._begun = self._counting = False
        self._shows_count = sys.stderr.isatty()

    def tell(self, verdict: ShadowVerdict) -> None:
        """Tell one verdict, if it is to be told."""
        told = verdict.is_difference or (self._everything and verdict.kind not in UNTOLD)
        if self._out is not None and (told or verdict.kind not in (SAME, TIE)):
            self._write(self._document(verdict))
        if not told:
            return
        self._clear()
        if self._json:
            click.echo(json.dumps(self._document(verdict)))
            return
        if not self._begun:
            self._begun = True
            click.echo(HEAD)
        click.echo(self._row(verdict))

    def count(self, counts: Mapping[str, int], behind: float) -> None:
        """Show how it stands, in one line that is written again, if that is a terminal."""
        if self._shows_count:
            late = f", {behind:.0f} s behind" if behind >= 1 else ""
            self._counting = True
            sys.stderr.write(f"{sentence(counts)}{late}"[:WIDTH].ljust(WIDTH) + "\r")
            sys.stderr.flush()

    def end(self, counts: Mapping[str, int], more: Mapping[str, int], seconds: float) -> None:
        """Tell the sum. `more`: what was not judged."""
        self._clear()
        summary = {"judged": sum(counts.values()), **_named(counts), **more, "seconds": round(seconds, 1)}
        if self._out is not None:
            self._write({"summary": summary})
        if self._json:
            click.echo(json.dumps({"summary": summary}))
            return
        click.echo(f"{sentence(counts)}, in {seconds:.0f} s")
        for name, number in more.items():
            if number:
                click.echo(f"Not judged: {number:,} {NOT_JUDGED[name]}")

    def _write(self, document: Mapping[str, Any]) -> None:
        assert self._out is not None
        self._out.write(json.dumps(document) + "\n")
        self._out.flush()

    def _clear(self) -> None:
        if self._counting:
            self._counting = False
            sys.stderr.write(" " * WIDTH + "\r")
            sys.stderr.flush()

    def _time(self, verdict: ShadowVerdict) -> datetime:
        return datetime.fromtimestamp(verdict.at + self._since, UTC)

    def _row(self, verdict: ShadowVerdict) -> str:
        there = _scored(verdict.there or "-", verdict.total_there)
        more = f" +{verdict.ties - 1}" if verdict.ties > 1 else ""
        here = _scored(f"{verdict.here or '-'}{more}", verdict.total_here)
        time = f"{self._time(verdict).astimezone():%H:%M:%S}"
        return ROW.format(time, verdict.kind, verdict.pod, there, here, verdict.explanation)

    def _document(self, verdict: ShadowVerdict) -> dict[str, Any]:
        scores = [
            {"plugin": each.plugin, "weight": each.weight, "there": each.there, "here": each.here}
            for each in verdict.scores
        ]
        rejected = {"plugin": verdict.plugin, "reasons": list(verdict.reasons)} if verdict.reasons else None
        return {
            "time": f"{self._time(verdict):%Y-%m-%dT%H:%M:%S.%fZ}",
            "kind": verdict.kind,
            "pod": verdict.pod,
            "uid": verdict.uid,
            "scheduler": verdict.scheduler,
            "there": verdict.there or None,
            "here": verdict.here or None,
            "best": verdict.ties,
            "totals": {"there": verdict.total_there, "here": verdict.total_here},
            "scores": scores,
            "rejected": rejected,
            "explanation": verdict.explanation,
            "because": list(verdict.because),
        }


NOT_JUDGED = {
    "missed": "decisions of a time in which nothing was seen",
    "undecided": "reports of pods that have a node here: their grace period is not over",
    "tooLate": "decisions at the end: what came after them is not known",
}


def sentence(counts: Mapping[str, int]) -> str:
    """Return the counts in one line."""
    parts = [
        f"{counts.get(SAME, 0):,} same",
        counted(counts.get(TIE, 0), "tie"),
        counted(counts.get(RACE, 0), "race"),
        f"{counts.get(SAMPLED, 0):,} sampled",
        f"{counts.get(DIFFERENT, 0):,} different",
        f"pending {counts.get(PENDING_THERE, 0):,} there and {counts.get(PENDING_HERE, 0):,} here",
    ]
    return f"{sum(counts.values()):,} judged: {', '.join(parts)}"


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    names = {SAME: "same", TIE: "ties", RACE: "races", SAMPLED: "sampled", DIFFERENT: "different",
             PENDING_THERE: "pendingThere", PENDING_HERE: "pendingHere"}  # fmt: skip
    return {name: counts.get(kind, 0) for kind, name in names.items()}


def _scored(name: str, total: int | None) -> str:
    return name if total is None else f"{name} ({total})"
