"""What a sweep varies: configurations and streams by name, and seeds. `--config NAME=FILE`, or the file's own name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stowplan.objects.errors import ConfigError

DEFAULT = "default"


@dataclass(frozen=True)
class Variants:
    """By name the file of each configuration (None: the default one) and of each stream (None: there is none)."""

    configurations: dict[str, Path | None]
    streams: dict[str, Path | None]
    seeds: tuple[int, ...]

    @property
    def several(self) -> bool:
        """True if there is more than one run."""
        return len(self.configurations) * len(self.streams) * len(self.seeds) > 1


def variants(configs: Sequence[str], streams: Sequence[str], seed: int, seeds: int) -> Variants:
    """Return what the flags say. Raises ConfigError for two with one name, and for a stream that does not exist."""
    found = dict[str, Path | None](_by_name("--config", configs)) or {DEFAULT: None}
    others = dict[str, Path | None](_by_name("--stream", streams)) or {"": None}
    for name, file in others.items():
        if file is not None and not file.exists():
            raise ConfigError("does not exist", file=str(file), path=f"--stream {name}")
    return Variants(found, others, tuple(range(seed, seed + seeds)))


def _by_name(flag: str, given: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in given:
        name, file = _named(text)
        if name in found:
            other = f"{found[name]} is named {name!r}, too" if found[name] != file else "is given twice"
            raise ConfigError(other, file=str(file), path=flag, remedy="give them names: NAME=FILE")
        if not name or ":" in name or not name.isprintable():
            raise ConfigError(f"{name!r} is no name", path=flag, remedy="write NAME=FILE, without a colon in the name")
        found[name] = file
    return found


def _named(text: str) -> tuple[str, Path]:
    """A file that is there is not taken for NAME=FILE."""
    name, equals, file = text.partition("=")
    if equals and file and not Path(text).exists():
        return name, Path(file)
    path = Path(text)
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name, path
