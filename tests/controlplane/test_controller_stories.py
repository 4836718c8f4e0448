"""The embedded controllers judged by kube-controller-manager: the same stories end in the same objects."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.controlplane.controller_stories import STORIES, Stage
from tests.controlplane.plane import ControlPlane
from tests.controlplane.test_embedded import embedded_cluster
from tests.embedded.kubectl_features import Step
from tests.embedded.kubectl_script import comparable

pytestmark = pytest.mark.controlplane
NODES = 3
# Which node a pod gets is for the scheduler to say, and a hash for those who make it.
_MASKS = (
    (r"^( *nodeName): [a-z]+-\d$", r"\1: NODE"),
    (r"^( *topology.kubernetes.io/zone): zone-\d$", r"\1: ZONE"),
    (r"\b(agent|db)-[0-9a-z]{8,10}\b", r"\1-HASH"),
    (r"(-hash: )'?\"?(agent-|db-)?[0-9a-z-]{8,20}'?\"?$", r"\1HASH"),
)


@pytest.fixture(scope="module")
def stages(plane: ControlPlane, request: pytest.FixtureRequest) -> Any:
    """A real cluster and an embedded one, alike, with kube-scheduler in both."""
    with (
        plane.nodes(NODES, prefix="story") as nodes, plane.start_kube_scheduler(),
        embedded_cluster(request.config, NODES, "story") as embedded,
    ):  # fmt: skip
        yield [(plane, nodes), (embedded, nodes)]


def plain(value: Any) -> Any:
    """A document without nulls. Conditions are known by their type, and come in the order in which they were set."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if each is not None}
    if not isinstance(value, list):
        return value
    items = [plain(each) for each in value]
    by_type = all(isinstance(each, dict) and {"type", "status"} <= each.keys() for each in items)
    return sorted(items, key=lambda each: str(each["type"])) if by_type else items


def told(document: dict[str, Any]) -> str:
    """What clusters should agree on: an object without what differs by nature."""
    metadata = document["metadata"]
    owners = [{name: each[name] for name in ("kind", "name")} for each in metadata.get("ownerReferences", ())]
    kept = {name: metadata[name] for name in ("labels", "finalizers", "generateName", "generation") if name in metadata}
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if "last-applied" not in key}
    numbered = any(each["kind"] == "StatefulSet" for each in owners) or "generateName" not in metadata
    kept |= {"owners": owners, "annotations": annotations, "name": metadata["name"] if numbered else "NAME"}
    text = yaml.safe_dump(plain({**document, "metadata": kept}), width=1000)
    for pattern, instead in _MASKS:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return "\n".join(comparable(Step("", ""), text))


def the_end(stage: Stage) -> list[str]:
    """All that a story saw, line by line, in an order that both clusters have."""
    objects = sorted(told(each).replace(stage.namespace, "NAMESPACE") for each in stage.seen)
    return "\n---\n".join(objects).splitlines()


@pytest.mark.parametrize("story", STORIES)
def test_the_same_story_ends_in_the_same_objects(stages: Any, story: str) -> None:
    ends = []
    for cluster, nodes in stages:
        with cluster.namespace("tale") as namespace:  # no name of a node: told apart below
            stage = Stage(cluster, namespace, nodes)
            STORIES[story](stage)
            ends.append(the_end(stage))
    real, embedded = ends
    assert embedded == real
