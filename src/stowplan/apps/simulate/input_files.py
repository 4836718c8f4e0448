"""The files of a run, read as bytes and handed to the readers of `stowplan.simulation`. The suffix says the format."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stowplan.apps.simulate import parquet
from stowplan.embedded import manifests
from stowplan.objects.errors import ConfigError
from stowplan.simulation import clusters
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.stream_events import StreamEvent
from stowplan.simulation.streams import scenario, table
from stowplan.simulation.templates import KINDS, Templates

OBJECTS = (".yaml", ".yml", ".json")
FORMATS = ".csv, .jsonl, .parquet, or .yaml for a scenario; each may end with .gz"


def cluster_documents(path: Path, problems: InputProblems) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a file, or of the files of a folder."""
    if path.is_dir():
        for each in sorted(each for each in path.iterdir() if each.suffix in OBJECTS):
            yield from cluster_documents(each, problems)
        return
    yield from clusters.documents(read(path), str(path).removesuffix(".gz"), problems)


def templates_of(paths: Iterable[Path], scheduler_names: tuple[str, ...], problems: InputProblems) -> Templates:
    """Read the templates in these files."""
    found = Templates(scheduler_names)
    for file, document in manifests.documents(paths):
        if document["kind"] not in KINDS:
            continue
        try:
            found.add(document, file=file)
        except ConfigError as error:
            problems.add(error)
    return found


def stream(path: Path, templates: Templates, problems: InputProblems, seed: int) -> list[StreamEvent]:
    """Read a stream."""
    name = str(path)
    match Path(name.removesuffix(".gz")).suffix:
        case ".csv":
            return list(table.from_csv(read(path), templates, problems, file=name))
        case ".jsonl" | ".ndjson":
            return list(table.from_jsonl(read(path), templates, problems, file=name))
        case ".parquet":
            return list(table.from_rows(parquet.rows(path), templates, problems, file=name))
        case ".yaml" | ".yml" | ".json":
            return scenario.from_yaml(read(path), templates, problems, seed, file=name)
        case suffix:
            raise ConfigError(f"{suffix or 'no suffix'} is no format of a stream", file=name, remedy=f"use {FORMATS}")


def prices(path: Path | None) -> Mapping[str, float]:
    """Read a table of prices: one `name,price` per line, the name of a node or of an instance type."""
    found: dict[str, float] = {}
    text = "" if path is None else read(path).decode(errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, comma, price = line.partition(",")
        try:
            amount = float(price)
        except ValueError:
            amount = -1.0
        if not comma or not 0 <= amount < float("inf"):
            remedy = "expected the name of a node or an instance type, a comma, and a price for an hour"
            raise ConfigError(f"found {line[:60]!r}", file=str(path), path=f"line {number}", remedy=remedy)
        found[name.strip()] = amount
    return found


def read(path: Path) -> bytes:
    """Return the bytes of a file; those in it, if it is compressed with gzip."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot be read: {str(error).splitlines()[0]}", file=str(path)) from None
