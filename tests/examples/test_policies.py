"""The examples of our own policies: valid configurations, workloads for them, and pages that name the files.

That they do what their pages say is shown in `tests/controlplane/test_examples.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader

ROOT = Path(__file__).parents[2]
POLICIES = {
    "policies/flavour-cluster-wide": "FlavourClusterWide",
    "policies/sp-priority": "SPPriority",
    "policies/workload-policy": "WorkloadPolicy",
    "policies/spark-application": "ResourceReservation",
    "policies/mpi-gang": "Coscheduling",
    "policies/pytorch-job": "GangPacking",
}
every_example = pytest.mark.parametrize("example", POLICIES)


def documents(example: str) -> list[Any]:
    text = (ROOT / "examples" / example / "workloads.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


def pods_of(example: str) -> list[Any]:
    return [each for each in documents(example) if each["kind"] == "Pod" or "template" in each.get("spec", {})]


@every_example
def test_the_configuration_enables_the_policy_without_notes(example: str) -> None:
    configuration, profiles = profile_loader.read_configuration(ROOT / "examples" / example / "config.yaml")
    (profile,) = profiles.values()
    assert configuration.notes == () and profile.plugin(POLICIES[example]) is not None


@every_example
def test_the_workloads_name_its_scheduler(example: str) -> None:
    _, profiles = profile_loader.read_configuration(ROOT / "examples" / example / "config.yaml")
    specs = [each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"] for each in pods_of(example)]
    assert {each["schedulerName"] for each in specs} == set(profiles)


@every_example
def test_the_files_that_its_page_names_exist(example: str) -> None:
    folder = ROOT / "examples" / example
    text = (folder / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:examples|deploy|tests)/[\w./-]*\w", text))
    assert {f"examples/{example}/config.yaml", f"examples/{example}/workloads.yaml"} <= named
    assert [each for each in named if not (ROOT / each).exists()] == []
    assert [each for each in re.findall(r"\]\(([^)]+)\)", text) if not (folder / each).exists()] == []


def test_each_policy_has_an_example_and_each_example_a_test() -> None:
    folders = {f"policies/{each.name}" for each in (ROOT / "examples" / "policies").iterdir()}
    assert folders == set(POLICIES)
    text = (ROOT / "tests" / "controlplane" / "test_examples.py").read_text(encoding="utf-8")
    assert [each for each in ("01-first-plugin", *POLICIES) if f'"{each}"' not in text] == []
