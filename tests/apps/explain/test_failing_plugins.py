"""`stowplan explain` with a plugin that raises: it is named, with file and line, and the rest is still told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stowplan.testing.builders import a_node, a_pod
from tests.apps.explain import schema
from tests.apps.explain.test_explain import dump, explain

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {%s: {enabled: [{name: "mine.py:Mine"}]}}}]
"""
PLUGIN = """
class Mine:
    def %s(self, pod, nodes):
        raise KeyError("zone")
"""


@pytest.mark.parametrize(("point", "method"), [("filter", "filter"), ("preFilter", "pre_filter"), ("score", "score")])
def test_the_plugin_is_named_with_file_and_line(tmp_path: Path, point: str, method: str) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN % method, encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG % point, encoding="utf-8")
    pods = [a_pod(name, cpu="1", node_selector={"disk": "ssd"}) for name in ("web", "web-2")]
    cluster = dump(tmp_path, a_node("a", cpu=4), a_node("b", cpu=4), *pods)
    answer = explain("web", "web-2", "--from", cluster, "--config", str(tmp_path / "config.yaml"))
    text = " ".join(answer.stdout.split())
    assert answer.exit_code == 1, answer.output
    assert f"plugin \"mine.py:Mine\" failed at {method}: KeyError: 'zone' (mine.py:4)" in text
    assert "nodeSelector disk=ssd" in text and "1. remove disk=ssd from nodeSelector" in text
    assert "tried without plugin mine.py:Mine: it helps once this works" in text
    if method == "pre_filter":  # the others are not asked about a pod that no node can take
        assert "no node: a plugin fails." in text
    document = explain("web", "-o", "json", "--from", cluster, "--config", str(tmp_path / "config.yaml"))
    found = json.loads(document.stdout)
    schema.check(found)
    cause = found["podCauses"][0]
    assert (cause["plugin"], cause["code"]) == ("mine.py:Mine", "plugin-error")
    assert (cause["details"]["file"], cause["details"]["line"]) == ("mine.py", 4)


def test_a_name_between_colons_is_no_emoji(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace("Mine", "Star") % "filter", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG.replace("Mine", "Star") % "filter", encoding="utf-8")
    cluster = dump(tmp_path, a_node("a", cpu=4), a_pod("web", cpu="1"))
    answer = explain("web", "--from", cluster, "--config", str(tmp_path / "config.yaml"))
    assert "mend plugin mine.py:Star: the pod would go to a" in " ".join(answer.stdout.split())
