"""Pods of a DaemonSet are one answer on the screen, and one each for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import REQUIRED, a_node, a_pod
from tests.apps.explain.test_output import explained, owned

SIZES = {"n0": 1, "n1": 1, "n2": 1}


def daemon(node: str, cpu: str = "2") -> Pod:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}
    return owned(a_pod(f"agent-{node}", cpu=cpu, affinity=affinity), "DaemonSet", "agent")


def there(**taints: str) -> list[Object]:
    nodes = [a_node(name, cpu=size, taints=[taints[name]] if name in taints else []) for name, size in SIZES.items()]
    return [*nodes, *map(daemon, SIZES)]


@pytest.mark.parametrize("arguments", [[], ["ds/agent"]])
def test_pods_with_the_same_cause_are_one_answer(tmp_path: Path, arguments: list[str]) -> None:
    code, text = explained(tmp_path, *arguments, there=there())
    head = " ".join(text.partition("The scheduler says")[0].partition("┏")[0].split())
    assert code == 1
    assert head.count("3 pods of daemonset default/agent have no node") == 1
    assert "n0, n1, n2: no node is big enough: the pod wants 2 cpu, the largest has 1" in head
    assert "lower the cpu request of container main from 2 to 1 → n0, n1, n2; 3 of 3 pods" in head
    assert head.count("kubectl -n default patch daemonset agent") == 1
    assert "default/agent-n" not in text


def test_a_pod_with_another_cause_is_an_answer_of_its_own(tmp_path: Path) -> None:
    _, text = explained(tmp_path, "ds/agent", there=there(n2="k=v:NoSchedule"))
    assert "2 pods of daemonset default/agent have no node" in text
    assert "\ndefault/agent-n2 has no node" in text
    assert "\n  n2: taint k=v:NoSchedule · no node is big enough" in text


def test_programs_get_each_pod(tmp_path: Path) -> None:
    _, text = explained(tmp_path, "ds/agent", "-o", "json", there=there())
    items = json.loads(text)["items"]
    assert [each["pod"] for each in items] == [f"default/agent-{name}" for name in SIZES]
    assert [each["remedies"][0]["node"] for each in items] == list(SIZES)
