"""`stowplan bundle`: configuration, metrics, decisions, log and versions in one file, to send with a question.

    stowplan bundle --config config.yaml --decision-log decisions.jsonl -o bundle.tar.gz
    stowplan bundle --pages https://127.0.0.1:10259 --token-file token --insecure-skip-tls-verify -o bundle.tar.gz

What cannot be read is named, and is not in it. Only the owner can read the file. `redaction` says what is left out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import click

from stowplan.apps.bundle.contents import Contents
from stowplan.apps.bundle.served_pages import PageAccess, check
from stowplan.apps.dump.command import write_private
from stowplan.kube import event_loop
from stowplan.objects.errors import ConfigError


@dataclass(frozen=True)
class BundleOptions:
    """The command line."""

    output: Path
    configs: tuple[Path, ...] = ()
    pages: tuple[str, ...] = ()
    token_file: Path | None = None
    ca_file: Path | None = None
    insecure: bool = False
    decision_log: Path | None = None
    log: Path | None = None
    cluster: bool = True
    kubeconfig: str = ""
    context: str = ""


def run(options: BundleOptions) -> int:
    """Write the bundle. Return the exit code: 1 if something that was asked for is not in it."""
    if options.output.is_dir():
        raise ConfigError("is a folder, expected the path of a file", file=str(options.output))
    access = PageAccess(options.token_file, options.ca_file, options.insecure)
    for url in options.pages:
        check(url, access)
    contents = Contents()
    contents.add_versions()
    for file in options.configs:
        contents.add_configuration(file)
    for url in options.pages:
        contents.add_pages(url, access)
    if options.decision_log is not None:
        contents.add_decisions(options.decision_log)
    if options.log is not None:
        contents.add_log(options.log)
    if options.cluster:
        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            runner.run(contents.add_cluster(options.kubeconfig, options.context))
    write_private(options.output, contents.archive())
    _tell(options, contents)
    return 1 if contents.problems else 0


def _tell(options: BundleOptions, contents: Contents) -> None:
    for name, body in sorted(contents.files.items()):
        click.echo(f"{len(body):>10,}  {name}")
    click.echo(
        f"Written to {options.output}. {contents.redaction.count} values that may be secret were left out.", err=True
    )
    click.echo("Names of pods, nodes and namespaces are in it. Look through it before you send it.", err=True)
    for problem in contents.problems:
        click.echo(f"Not in it: {problem}", err=True)
