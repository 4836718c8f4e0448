"""The whole command line, as mkdocs-click reads it: `stowplan place` loads the commands below it only when it runs."""

from __future__ import annotations

import click

from stowplan.apps.cli import main as _main
from stowplan.apps.place.commands import place

main = click.Group("stowplan", commands={**_main.commands, "place": place}, help=_main.help, epilog=_main.epilog)
