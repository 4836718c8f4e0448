"""The manifest of the example is one that `stowplan place follow` takes. The story is told in
tests/controlplane/test_placement_stories.py.
"""

from __future__ import annotations

from stowplan.apps.place.follow import manifest
from tests.examples.loading import EXAMPLES

FOLDER = EXAMPLES / "08-follow-decisions"


def test_the_workload_can_be_followed() -> None:
    (found,) = manifest.read([FOLDER / "workload.yaml"]).objects
    assert (found["kind"], found["metadata"]["name"]) == ("Deployment", "database")
    assert f"-f examples/{FOLDER.name}/workload.yaml" in (FOLDER / "README.md").read_text()
