"""`stowplan config check` and `stowplan config show` for a PlacementConfiguration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from stowplan.apps import config_show, json_output
from stowplan.apps.place.configuration import load_policy
from stowplan.apps.profile_loader import read_text
from stowplan.framework.config import document
from stowplan.framework.config.placement_configuration import KIND
from stowplan.objects.errors import ConfigError


def is_placement_configuration(file: Path) -> bool:
    """True if the file says so. A file that cannot be read is no one's, and whoever reads it next says why."""
    try:
        return document.parse(read_text(file)).get("kind") == KIND
    except ConfigError:
        return False


def check(file: Path, plugin_path: Sequence[Path] = ()) -> None:
    loaded = load_policy(file, plugin_path)
    for note in loaded.configuration.notes:
        click.echo(f"note: {note}", err=True)
    points = loaded.configuration.points
    click.echo(f"{file}: valid, {len(points['filter'])} filter(s), {len(points['score'])} score plugin(s)")


def found(file: Path, plugin_path: Sequence[Path]) -> dict[str, Any]:
    """Return the plugins of each point, and their arguments, for programs."""
    loaded = load_policy(file, plugin_path)
    about = {"apiVersion": json_output.VERSION, "kind": "EnabledClusterPlugins"}
    points = config_show.points(loaded.configuration.points)
    return (
        about | {"points": points} | config_show.plugin_config(loaded.policy.plugins, loaded.configuration.plugin_args)
    )
