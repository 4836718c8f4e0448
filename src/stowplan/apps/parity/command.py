"""`stowplan parity`: replay recorded decisions, and compare every field.

The records are decisions of the real kube-scheduler about pods, or of Open Cluster Management about placements; or
runs of the study of GPU fragmentation (`gpu_study_records`).
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from stowplan.apps.parity import claim_records, gpu_study_records, node_records, placement_records
from stowplan.objects.errors import ConfigError, StowplanError

AGREES, DIFFERS, UNSUPPORTED = "agree", "differ", "unsupported"
INVALID = "not valid"  # an API server refuses these objects: no answer is right or wrong


def run(files: Iterable[Path], show: int, out: IO[str] | None, data: Path | None = None) -> int:
    """Replay the files. Return 0 if every supported scenario agrees in every field.

    `data`: the folder with the lists of the GPU study; then the files are its runs.
    """
    if data is not None:
        return gpu_study_records.run(files, data, show, out)
    console, notes = Console(highlight=False), Console(stderr=True, highlight=False)
    tables: dict[str, Counter[str]] = {}
    shown = 0
    scenarios = [pair for file in files for pair in read(file)]
    for file, scenario in track(scenarios, "replaying", console=notes, disable=not sys.stderr.isatty()):
        outcome, answer, found = replay(scenario)
        category = scenario.get("category") or file.name.partition(".")[0]
        tables.setdefault(category, Counter())[outcome] += 1
        if out is not None:
            print(json.dumps({"id": scenario["id"], **answer}), file=out)
        if found and outcome == DIFFERS and shown < show:
            shown += 1
            _show(console, scenario["id"], found)
    _print(console, tables)
    total = sum(tables.values(), Counter[str]())
    if total[DIFFERS] > shown:
        notes.print(f"{total[DIFFERS] - shown} more differ; --show {total[DIFFERS]} shows all")
    return 1 if total[DIFFERS] or not total[AGREES] + total[UNSUPPORTED] + total[INVALID] else 0


def read(file: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the scenarios of a `.jsonl` or `.jsonl.gz` file."""
    for number, scenario in lines(file):
        if gpu_study_records.FIELDS[-1] in (scenario if isinstance(scenario, dict) else ()):
            remedy = "give the folder with the node and pod lists: --data DIR"
            raise ConfigError("a record of the GPU study", file=str(file), path=f"line {number}", remedy=remedy)
        if not placement_records.is_record(scenario) and not _is_record(scenario):
            remedy = (
                "a record is an object with id, config, cluster (an object of lists), pod and expect; or with id, now, "
                "objects (an object of lists), placement and expect"
            )
            raise ConfigError("not a record", file=str(file), path=f"line {number}", remedy=remedy)
        yield file, scenario


def lines(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield what is on each line of a `.jsonl` or `.jsonl.gz` file, with its number."""
    try:
        data = file.read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=str(file)) from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"not JSON: {error}", file=str(file), path=f"line {number}") from None


def _is_record(found: object) -> bool:
    if not isinstance(found, dict) or {"id", "cluster", "pod"} - found.keys():
        return False
    if not isinstance(found["id"], str | int) or not isinstance(found.get("category", ""), str):
        return False
    shapes = (found["cluster"], found["pod"], found.get("config") or {}, found.get("expect") or {})
    lists = found["cluster"].values() if isinstance(found["cluster"], dict) else ()
    return all(isinstance(shape, dict) for shape in shapes) and all(isinstance(each or [], list) for each in lists)


def replay(scenario: dict[str, Any]) -> tuple[str, dict[str, Any], list[tuple[str, object, object]]]:
    """Replay one scenario: the outcome, our answer or error, and the differences."""
    records = _form(scenario)
    valid = scenario.get("apiValid") is not False
    try:
        answer = records.answer(scenario)
    except StowplanError as error:
        return (DIFFERS if valid else INVALID), {"error": str(error)}, [("", "an answer", f"error: {error}")]
    found = list(records.differences(scenario.get("expect", {}), answer))
    return (INVALID if not valid else DIFFERS if found else AGREES), {"expect": answer}, found


def _form(scenario: dict[str, Any]) -> Any:
    """The module that answers records of this form."""
    if "placement" in scenario:
        return placement_records
    return claim_records if claim_records.is_record(scenario) else node_records


def _show(console: Console, scenario: str, found: list[tuple[str, object, object]]) -> None:
    console.print(f"{scenario} differs in {len(found)} field(s):", markup=False)
    for path, expected, ours in found[:8]:
        console.print(
            f"  {path or '(whole)'}\n    recorded {json.dumps(expected)}\n    ours     {_json(ours)}",
            markup=False,
            soft_wrap=True,
        )
    if len(found) > 8:
        console.print(f"  … and {len(found) - 8} more")


def _json(value: object) -> str:
    return value if isinstance(value, str) and value.startswith("error") else json.dumps(value)


def _print(console: Console, tables: dict[str, Counter[str]]) -> None:
    total = sum(tables.values(), Counter[str]())
    kinds = (AGREES, DIFFERS, UNSUPPORTED, *((INVALID,) if total[INVALID] else ()))
    table = Table("category", "scenarios", *kinds, box=None)
    for category, outcomes in sorted(tables.items()):
        table.add_row(escape(category), str(outcomes.total()), *(str(outcomes[kind]) for kind in kinds))
    table.add_section()
    table.add_row("in all", str(total.total()), *(str(total[kind]) for kind in kinds))
    console.print(table)
