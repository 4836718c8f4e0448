"""The files of a run, read as bytes and handed to the readers of `stowplan.simulation`. The suffix says the format."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stowplan.apps.simulate import parquet
from stowplan.embedded import manifests
from stowplan.objects.errors import ConfigError
from stowplan.simulation import clusters, openb
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.stream_events import StreamEvent
from stowplan.simulation.streams import openb_list, scenario, table
from stowplan.simulation.templates import KINDS, Templates

OBJECTS = (".yaml", ".yml", ".json")
FORMATS = ".csv (also OpenB's lists), .jsonl, .parquet, or .yaml for a scenario; each may end with .gz"


Documents = Iterator[tuple[str, dict[str, Any]]]


def cluster_documents(path: Path, problems: InputProblems) -> Documents:
    """Yield the objects of a file, or of the files of a folder. Raises ConfigError if there are none."""
    found = False
    for file in files(path):
        for each in clusters.documents(read(file), str(file), problems):
            found = True
            yield each
    if not found and not problems.count:
        remedy = "name a dump, manifests, a ClusterTemplate, or a node list of OpenB (.csv)"
        raise ConfigError("has no objects", file=str(path), remedy=remedy)


def files(path: Path) -> list[Path]:
    """Return the file, or the files with objects in the folder."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if Path(each.name.removesuffix(".gz")).suffix in OBJECTS)


def templates_of(
    paths: Iterable[Path], scheduler_names: tuple[str, ...], problems: InputProblems
) -> tuple[Templates, Counter[str]]:
    """Read the templates in these files. Return them, and the number of objects of each kind that is none."""
    found, others = Templates(scheduler_names), Counter[str]()
    for file in (each for path in paths for each in files(path)):
        name = str(file).removesuffix(".gz")
        for _, document in manifests.documents_in(read(file), str(file), json=name.endswith(".json")):
            if document["kind"] not in KINDS:
                others[document["kind"]] += 1
                continue
            try:
                found.add(document, file=str(file))
            except ConfigError as error:
                problems.add(error)
    return found, others


def streams(paths: Iterable[Path], templates: Templates, problems: InputProblems, seed: int) -> list[StreamEvent]:
    """Read streams. Names that the second one makes up have a 2, and so on, so that they are no names of the first."""
    events = list[StreamEvent]()
    for number, path in enumerate(paths, 1):
        events += stream(path, templates, problems, seed, f"{number}-" if number > 1 else "")
    return events


def stream(path: Path, templates: Templates, problems: InputProblems, seed: int, part: str = "") -> list[StreamEvent]:
    """Read a stream. What is in a CSV is seen by its columns. `part`: of the names that are made up."""
    name = str(path)
    match Path(name.removesuffix(".gz")).suffix:
        case ".csv":
            text = read(path)
            if openb.is_list(text):
                return list(openb_list.from_openb(text, problems, file=name, scheduler_name=templates.scheduler_name))
            return list(table.from_csv(text, templates, problems, file=name, part=part))
        case ".jsonl" | ".ndjson":
            return list(table.from_jsonl(read(path), templates, problems, file=name, part=part))
        case ".parquet":
            return list(table.from_rows(parquet.rows(path), templates, problems, file=name, part=part))
        case ".yaml" | ".yml" | ".json":
            return scenario.from_yaml(read(path), templates, problems, seed, file=name, part=part)
        case suffix:
            raise ConfigError(f"{suffix or 'no suffix'} is no format of a stream", file=name, remedy=f"use {FORMATS}")


def prices(path: Path | None) -> Mapping[str, float]:
    """Read a table of prices: one `name,price` per line, the name of a node or of an instance type."""
    found: dict[str, float] = {}
    for number, line in enumerate([] if path is None else lines(path), 1):
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
        if name.strip() in found:
            raise ConfigError(f"{name.strip()[:60]!r} has a price already", file=str(path), path=f"line {number}")
        found[name.strip()] = amount
    return found


def node_order(path: Path | None) -> list[str] | None:
    """Read names of nodes, one in each line."""
    if path is None:
        return None
    places: dict[str, int] = {}
    for number, line in enumerate(lines(path), 1):
        name = line.strip()
        if name in places:
            problem = f"{name[:60]!r} is in line {places[name]}, too"
            raise ConfigError(problem, file=str(path), path=f"line {number}", remedy="each node has one place")
        if name:
            places[name] = number
    return list(places)


def lines(path: Path) -> list[str]:
    """Return the lines of a text."""
    data = read(path)
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8", file=str(path), path=f"line {line}", remedy="save it as UTF-8") from None


def read(path: Path) -> bytes:
    """Return the bytes of a file; those in it, if it is compressed with gzip."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot be read: {str(error).splitlines()[0]}", file=str(path)) from None
