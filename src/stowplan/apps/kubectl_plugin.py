"""`kubectl stowplan`: kubectl runs `kubectl-stowplan`, and asks `kubectl_complete-stowplan` what may come next."""

from __future__ import annotations

import sys

import click

from stowplan.apps.cli import main


def run() -> None:
    """`kubectl-stowplan`: help and usage say the words that were typed."""
    main(prog_name="kubectl stowplan", complete_var="_KUBECTL_STOWPLAN_COMPLETE")


def complete() -> None:
    """`kubectl_complete-stowplan`: kubectl calls it with the words so far, and reads one proposal per line."""
    from click.shell_completion import ShellComplete

    *words, last = sys.argv[1:] or [""]
    for found in ShellComplete(main, {}, "kubectl-stowplan", "").get_completions(words, last):
        click.echo(f"{found.value}\t{found.help}" if found.help else found.value)
    click.echo(":0")  # the shell may also propose file names
