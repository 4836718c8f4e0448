"""docs/scores.md: the producer it shows runs as it stands, and every flag it lists is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from stowplan.apps.score_agent.commands import PRODUCERS
from stowplan.embedded.api.request_options import RequestOptions
from tests.embedded.running import served

PAGE = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")


def test_the_producer_on_the_page_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with served(with_controllers=False) as hub:
        namespaces = hub.api.catalogue.find("", "v1", "namespaces")
        assert namespaces is not None
        for name in ("cluster1", "cluster2"):
            hub.api.create(namespaces, "", {"metadata": {"name": name}}, RequestOptions(0.0))
        (tmp_path / "kubeconfig").write_text(hub.kubeconfig())
        environment = os.environ | {"KUBECONFIG": str(tmp_path / "kubeconfig")}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "cluster1 96 written\ncluster2 -91 written\n"), done.stderr
        resource = hub.api.catalogue.of_kind("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
        assert resource is not None
        assert hub.api.get(resource, "cluster1", "latency")["status"]["scores"] == [{"name": "ms", "value": 96}]


def test_every_flag_is_on_the_page_and_no_other() -> None:
    given = {option for command in PRODUCERS.values() for each in command.params for option in each.opts}
    listed = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.replace("--no-scheduler", "")))
    kubectls = {"--context", "--kubeconfig", "--subresource", "--duration", "--from-file"}
    assert listed - kubectls == {each for each in given if each.startswith("--") and each != "--v"} - kubectls
