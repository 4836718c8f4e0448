"""A stream as a plain table: one row for each arrival, as CSV, JSONL or Parquet.

    arrival,duration,template,count,namespace,owner
    0s,2h,trainer,4,research,alice
    90s,10m,web,1,shop,

`arrival` (needed) and `duration` are seconds, or texts such as 90s, 2h or 3d. `template` names a template; without it a
row says what its pods request, in the columns `cpu`, `memory` and those of other resources, whose names have a slash
(`nvidia.com/gpu`). With a template such columns replace its requests. Another column is an error.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from stowplan.framework.config.document import suggestion
from stowplan.objects import quantity
from stowplan.objects.errors import ConfigError
from stowplan.simulation import durations
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.stream_events import Arrival
from stowplan.simulation.templates import Templates

COLUMNS = ("arrival", "duration", "template", "count", "namespace", "owner", "name", "cpu", "memory")
MOST = 100_000  # pods of one row

Row = Mapping[str, Any]


def from_csv(
    text: bytes, templates: Templates, problems: InputProblems, *, file: str = "stream.csv", part: str = ""
) -> list[Arrival]:
    """Read CSV with a header. A row that makes no sense goes to `problems`, with its line.

    `part`: of the names of pods that have none of their own, if several streams would give the same ones.

    stream = stream_from_csv(b"arrival,duration,cpu\\n0s,10m,2\\n", Templates(), problems, file="trace.csv")
    """
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise ConfigError("found a byte that is no UTF-8 text", file=file, path=f"line {line}") from None
    reader = csv.reader(line + "\n" for line in decoded.split("\n"))
    try:
        header = [each.strip() for each in next(reader, [])]
        check_columns(header, file)
        return from_rows(_csv_rows(reader, header, file, problems), templates, problems, file=file, part=part)
    except csv.Error as error:
        raise ConfigError(f"not CSV: {error}", file=file, path=f"line {reader.line_num}") from None


def _csv_rows(
    reader: Any, header: list[str], file: str, problems: InputProblems
) -> Iterator[tuple[str, dict[str, str]]]:
    for cells in reader:
        place = f"line {reader.line_num}"
        if len(cells) == len(header):
            yield place, {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        elif cells:
            problem = f"found {len(cells)} cells, expected {len(header)}: {', '.join(header)}"
            problems.add(ConfigError(problem, file=file, path=place))


def from_jsonl(
    text: bytes, templates: Templates, problems: InputProblems, *, file: str = "stream.jsonl", part: str = ""
) -> list[Arrival]:
    """Read one JSON object per line.

    stream = stream_from_jsonl(b'{"arrival": 0, "cpu": "2"}', Templates(), problems)
    """
    return from_rows(_json_rows(text, file, problems), templates, problems, file=file, part=part)


def _json_rows(text: bytes, file: str, problems: InputProblems) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            row = msgspec.json.decode(line)
            if not isinstance(row, dict):
                raise ConfigError(f"found {type(row).__name__}, expected an object", file=file, path=place)
            check_columns(list(row), file, place)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problems.add(ConfigError(f"not JSON: {error}", file=file, path=place))
        except ConfigError as error:
            problems.add(error)
        else:
            yield place, row


def from_rows(
    rows: Iterable[tuple[str, Row]], templates: Templates, problems: InputProblems, *, file: str, part: str = ""
) -> list[Arrival]:
    """Make arrivals of rows, each with its place. A row that makes no sense goes to `problems`.

    stream = stream_from_rows([("row 1", {"arrival": 0, "cpu": "2"})], Templates(), problems, file="mine")
    """
    found: list[Arrival] = []
    for place, row in rows:
        try:
            found += _arrivals(row, templates, file, place, part)
        except ConfigError as error:
            problems.add(ConfigError(error.problem, file=file, path=place, remedy=error.remedy))
    return sorted(found, key=lambda event: event.at)


def check_columns(names: list[str], file: str, place: str = "line 1") -> None:
    """Raise ConfigError for a column that is not known, that appears twice, or that is missing."""
    for name in names:
        if name not in COLUMNS and "/" not in name:
            known = f"known: {', '.join(COLUMNS)}, and resources such as nvidia.com/gpu"
            raise ConfigError(f"unknown column {name!r}", file=file, path=place,
                              remedy=suggestion(name, COLUMNS) or known)  # fmt: skip
        if names.count(name) > 1:
            raise ConfigError(f"the column {name!r} appears twice", file=file, path=place)
    if "arrival" not in names:
        raise ConfigError("found no column arrival", file=file, path=place)


def _arrivals(row: Row, templates: Templates, file: str, place: str, part: str) -> Iterator[Arrival]:
    at = _length(row, "arrival")
    if at is None:
        raise ConfigError("arrival is empty", remedy="say when, such as 90s")
    duration, template = _length(row, "duration"), _text(row, "template")
    requests = {key: _amount(key, value) for key, value in row.items() if _is_resource(key) and value not in ("", None)}
    if not template and not requests:
        raise ConfigError("found neither a template nor requests", remedy="give a template, or cpu and memory")
    number = place.rpartition(" ")[2]
    name = _text(row, "name") or f"{template or 'pod'}-{part}{number}"
    made = templates.made(
        template, name, namespace=_text(row, "namespace") or "default", count=_count(row),
        owner=_text(row, "owner"), requests=requests,
    )  # fmt: skip
    for document in made:
        yield Arrival(at=at, duration=duration, document=document, file=file, place=place)


def _is_resource(key: str) -> bool:
    return key in ("cpu", "memory") or "/" in key


def _length(row: Row, column: str) -> float | None:
    value = row.get(column)
    if value is None or value == "":
        return None
    found = durations.seconds(value)
    if found is None:
        raise ConfigError(f"{column} is {value!r}, expected seconds or a text such as 90s, 2h or 3d")
    if found < 0:
        raise ConfigError(f"{column} is {value!r}: it is negative", remedy="expected 0 or more")
    return found


def _count(row: Row) -> int:
    value = row.get("count")
    if value is None or value == "":
        return 1
    try:
        found = int(str(value))
    except ValueError:
        found = 0
    if not 1 <= found <= MOST:
        raise ConfigError(f"count is {value!r}, expected a whole number from 1 to {MOST:,}")
    return found


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{column} is {value!r}, expected a text")
    return value or ""


def _amount(resource: str, value: Any) -> str:
    text = str(value)
    try:
        fits = quantity.nanos(quantity.quantity(text)) >= 0
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(f"{resource} is {value!r}, expected an amount such as 500m, 4 or 16Gi")
    return text
