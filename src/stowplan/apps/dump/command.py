"""`stowplan dump`: the scheduling-relevant objects of a cluster in one file, that everything of ours reads.

    stowplan dump -o cluster.json                 of the cluster of the kubeconfig
    stowplan dump --from all.yaml -o small.json   of files
    stowplan dump --anonymise -o shared.json      with names replaced

It reads with the rights of deploy/read-only.yaml. What may not be read is named, and left out. The file is JSON if its
name ends with .json, otherwise YAML, and only its owner can read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import Progress

from stowplan.apps import plugin_kinds, profile_loader
from stowplan.apps.dump.cluster_reader import ClusterReader
from stowplan.embedded.manifests import documents
from stowplan.kube import event_loop
from stowplan.kube.resources import ApiResource
from stowplan.objects import yaml_text
from stowplan.objects.errors import ConfigError
from stowplan.simulation.dump.cluster_dump import ClusterDump

REMEDY = "give -o a path in a folder that you may write to"


@dataclass(frozen=True)
class DumpOptions:
    """The command line."""

    output: Path | None = None
    files: tuple[Path, ...] = ()
    anonymise: bool = False
    seed: str = ""
    keep: tuple[str, ...] = ()
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    kubeconfig: str = ""
    context: str = ""


def run(options: DumpOptions) -> int:
    """Write the dump. Return the exit code."""
    if options.seed and not options.anonymise:
        raise ConfigError("found --seed without --anonymise", remedy="leave --seed out")
    _check_folder(options.output)
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        brought, names = _configured(options)
        dump = ClusterDump(_read(options, brought, progress), (*options.keep, *names), brought.values())
        items = _items(dump, options, progress)
        progress.add_task("writing", total=None)
        _write(options.output, items)
    _tell(options, dump, len(items))
    return 0


def _read(options: DumpOptions, brought: Mapping[str, ApiResource], progress: Progress) -> Iterator[Mapping[str, Any]]:
    bar = progress.add_task("reading", total=None)
    if options.files:
        for _, document in documents(options.files):
            progress.advance(bar)
            yield document
        return
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        reader = ClusterReader(options.kubeconfig, options.context, lambda: progress.advance(bar))
        yield from runner.run(reader.read(brought))
    if reader.unseen:
        click.echo(f"Not seen, for lack of rights: {', '.join(reader.unseen)}.", err=True)


def _configured(options: DumpOptions) -> tuple[dict[str, ApiResource], tuple[str, ...]]:
    """Return the resources that the plugins of the configuration bring, and the names of its schedulers, which stay."""
    if options.config is None:
        return {}, ()
    _, profiles = profile_loader.read_configuration(options.config, options.plugin_path)
    return plugin_kinds.brought(profiles.values()), tuple(profiles)


def _items(dump: ClusterDump, options: DumpOptions, progress: Progress) -> list[dict[str, Any]]:
    if not options.anonymise:
        return dump.plain()
    bar = progress.add_task("replacing names", total=len(dump))
    return dump.anonymised(_key(options.seed), lambda: progress.advance(bar))


def _key(seed: str) -> bytes:
    """Return the key of the substitutes: random, so that nobody can find names by trying words."""
    return hashlib.blake2b(seed.encode(), digest_size=32).digest() if seed else secrets.token_bytes(32)


def _tell(options: DumpOptions, dump: ClusterDump, written: int) -> None:
    where = options.output or "standard output"
    click.echo(f"{written:,} objects in {where}", err=True)
    if dump.left_out:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(dump.left_out.items()))
        click.echo(f"Left out, for no decision depends on them: {kinds}.", err=True)
    if options.seed:
        click.echo("Whoever knows the seed can find names by trying words.", err=True)


def _check_folder(output: Path | None) -> None:
    """Fail before the cluster is read, not after."""
    if output is None:
        return
    if output.is_dir():
        raise ConfigError("is a folder, expected the path of a file", file=str(output))
    if not output.absolute().parent.is_dir():
        raise ConfigError("cannot be written: its folder does not exist", file=str(output), remedy=REMEDY)


def _write(output: Path | None, items: list[dict[str, Any]]) -> None:
    as_json = output is not None and output.suffix == ".json"
    if output is None:
        click.echo(_text(items, as_json=False).decode(), nl=False)
    else:
        write_private(output, _text(items, as_json=as_json))


def _text(items: list[dict[str, Any]], *, as_json: bool) -> bytes:
    """The list of all items; in JSON each item on a line of its own."""
    if as_json:
        lines = b",\n".join(msgspec.json.encode(each) for each in items)
        return b'{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [\n' + lines + b"\n]}\n"
    return yaml_text.dump({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}).encode()


def write_private(file: Path, text: bytes) -> None:
    """Write a file that only its owner can read, in one step: there is the whole file, or the one before."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(file)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file), remedy=REMEDY) from None
