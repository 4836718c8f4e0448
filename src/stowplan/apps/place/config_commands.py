"""`stowplan config check` and `stowplan config show` for a PlacementConfiguration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from stowplan.apps import json_output
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


def shown(file: Path, plugin_path: Sequence[Path], output: str) -> tuple[dict[str, Any], str, str]:
    """Return the plugins of each point for programs, the form of output, and the text for people."""
    points = load_policy(file, plugin_path).configuration.points
    found = {
        point: [{"name": each.name} | ({"weight": each.weight} if point == "score" else {}) for each in plugins]
        for point, plugins in points.items()
    }
    filters = ", ".join(each.name for each in points["filter"])
    scores = ", ".join(f"{each.name}*{each.weight}" for each in points["score"])
    about = {"apiVersion": json_output.VERSION, "kind": "EnabledClusterPlugins"}
    return about | {"points": found}, output, f"filter: {filters}\nscore: {scores}"
