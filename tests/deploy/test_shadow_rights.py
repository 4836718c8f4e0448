"""deploy/shadow.yaml grants what shadow follows, and no more: nothing in it writes."""

from __future__ import annotations

from pathlib import Path

import yaml

from stowplan.apps import plugin_kinds, profile_loader
from stowplan.kube.resources import RESOURCES

FILE = Path(__file__).parents[2] / "deploy" / "shadow.yaml"


def test_the_role_has_what_is_followed() -> None:
    _, profiles = profile_loader.defaults()
    followed = {**plugin_kinds.read_by(profiles.values()), "PriorityClass": RESOURCES["PriorityClass"]}
    role, binding = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {(each.group, each.plural): {"list", "watch"} for each in followed.values()}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
