"""What a linter says of the manifests and of the chart: nothing, or something that is explained here.

The linter is kube-score, with its optional checks. A finding without an explanation fails, and so does an explanation
without a finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import tools
from tests.deploy.charts import DEPLOY, kustomize, template

pytestmark = pytest.mark.full  # Go builds the tools

ALL_FINE = 10
# Those with something that runs: of roles and definitions it has no opinion.
FOLDERS = (
    ".", "placement", "follow", "scores/prometheus", "scores/http", "scores/static", "scores/usage/cluster",
)  # fmt: skip
EVERYTHING: dict[str, Any] = {
    "placement": {"enabled": True, "taintUnavailable": True},
    "scores": {"agents": {"fixed": {"producer": "static"}, "usage": {"producer": "usage", "clusterName": "c"}}},
    "monitoring": {"serviceMonitor": {"enabled": True}},
    "priorityClass": {"create": True},
}


@dataclass(frozen=True)
class Finding:
    check: str
    kind: str
    name: str
    summary: str


_BURSTS = (
    "A scheduler needs much for seconds (a full cluster, a storm of pods) and little for hours: requests are what it "
    "needs at rest, limits what it may take. With equal ones every cluster would reserve the most, or throttle the one "
    "that renews a lease."
)
_ONE_PRODUCER = (
    "A second producer would write the same scores, and two at once would contradict each other during an update. "
    "Scores stay valid for ten rounds without it. The Service is for Prometheus alone."
)
# Why each stays as it is, by the check, and by the name of the Deployment where not all have it.
EXPLAINED: Mapping[tuple[str, str], str] = {
    ("container-cpu-requests-equal-limits", ""): _BURSTS,
    ("container-memory-requests-equal-limits", ""): _BURSTS,
    ("container-resource-requests-equal-limits", ""): _BURSTS,
    ("container-ephemeral-storage-request-and-limit", ""): (
        "Logs count as ephemeral storage, and a limit would evict the scheduler for what it says on a bad day; the "
        "kubelet rotates logs. Nothing else is written: the root is read-only, and /tmp has a size limit of its own."
    ),
    ("container-image-pull-policy", ""): (
        "The tag is a version and never moves, or it is a digest. A scheduler has to start while the registry is down: "
        "the registry itself may be waiting for it."
    ),
    ("pod-networkpolicy", ""): (
        "It misses rules for what goes out. The address of the API server differs between clusters, and a wrong rule "
        "would cut the scheduler off; networkPolicy.egress of the chart takes yours."
    ),
    ("deployment-replicas", "stowplan-scores"): _ONE_PRODUCER,
    ("deployment-replicas", "stowplan-scores-fixed"): _ONE_PRODUCER,
    ("deployment-strategy", "stowplan-scores"): _ONE_PRODUCER,
    ("deployment-strategy", "stowplan-scores-fixed"): _ONE_PRODUCER,
}


def findings(documents: list[Any], folder: Path) -> Iterator[Finding]:
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    done = tools.run(
        tools.LINTER,
        ["score", "--output-format", "json", "--all-default-optional", "--kubernetes-version", "v1.36", file],
    )
    assert done.stdout.startswith("["), done.stdout + done.stderr
    for each in json.loads(done.stdout):
        for check in each["checks"]:
            if check["skipped"] or check["grade"] >= ALL_FINE:
                continue
            for comment in check["comments"] or [{"summary": ""}]:
                name, kind = each["object_meta"]["name"], each["type_meta"]["kind"]
                yield Finding(check["check"]["id"], kind, name, comment["summary"])


def explained(finding: Finding) -> bool:
    return bool({(finding.check, ""), (finding.check, finding.name)} & EXPLAINED.keys())


@pytest.mark.parametrize("folder", FOLDERS)
def test_manifests(folder: str, tmp_path: Path) -> None:
    found = list(findings(kustomize(DEPLOY / folder), tmp_path))
    assert [each for each in found if not explained(each)] == []


@pytest.mark.parametrize("values", [pytest.param({}, id="by default"), pytest.param(EVERYTHING, id="with everything")])
def test_the_chart(values: dict[str, Any], tmp_path: Path) -> None:
    found = list(findings(template(values), tmp_path))
    assert [each for each in found if not explained(each)] == []
    if values:
        met = {key for each in found for key in ((each.check, ""), (each.check, each.name))}
        assert EXPLAINED.keys() <= met, "an explanation of nothing"


def test_a_mistake_is_found(tmp_path: Path) -> None:
    documents = template({})
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    del deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    found = [each for each in findings(documents, tmp_path) if not explained(each)]
    assert [each.check for each in found] == ["container-security-context-readonlyrootfilesystem"]
