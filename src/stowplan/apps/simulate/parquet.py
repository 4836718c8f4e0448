"""Parquet files, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from stowplan.objects.errors import ConfigError
from stowplan.simulation.streams import table

BATCH = 10_000  # rows that are read, or written, at once


def module(file: str) -> ModuleType:
    """Return pyarrow.parquet. Raises ConfigError, which names the file, if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        remedy = "pip install pyarrow, or use CSV or JSONL"
        raise ConfigError("Parquet needs pyarrow, which is not installed", file=file, remedy=remedy) from None
    found: ModuleType = pyarrow.parquet
    return found


def rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each row with its place."""
    parquet = module(str(path))
    try:
        source = parquet.ParquetFile(path)
    except Exception as error:
        raise ConfigError(f"not Parquet: {str(error).splitlines()[0]}", file=str(path)) from None
    table.check_columns(list(source.schema_arrow.names), str(path), "its columns")
    number = 0
    for batch in source.iter_batches(BATCH):
        for row in batch.to_pylist():
            number += 1
            yield f"row {number}", row


def write(path: Path, found: Iterable[Mapping[str, Any]]) -> bool:
    """Write rows, with one column for each key of nested mappings (`requests.cpu`). False: pyarrow is not installed."""
    try:
        parquet = module(str(path))
    except ConfigError:
        return False
    import pyarrow

    flat = [flattened(row) for row in found]
    names = {name: None for row in flat for name in row}
    parquet.write_table(pyarrow.table({name: [row.get(name) for row in flat] for name in names}), path)
    return True


def flattened(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose nested mappings became columns of their own."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, Mapping) else {name: value}
    return found
