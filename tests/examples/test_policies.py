"""The examples of our own policies: configurations that can be used, for the pods beside them, and pages that say so.

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
    "02-flavour-cluster-wide": "FlavourClusterWide",
    "03-sp-priority": "SPPriority",
    "04-workload-policy": "WorkloadPolicy",
}
every_example = pytest.mark.parametrize("example", POLICIES)


def documents(example: str) -> list[Any]:
    text = (ROOT / "examples" / example / "workloads.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


@every_example
def test_the_configuration_has_the_policy_and_nothing_to_remark(example: str) -> None:
    configuration, profiles = profile_loader.read_configuration(ROOT / "examples" / example / "config.yaml")
    (profile,) = profiles.values()
    assert configuration.notes == () and profile.plugin(POLICIES[example]) is not None


@every_example
def test_the_workloads_are_for_its_scheduler(example: str) -> None:
    _, profiles = profile_loader.read_configuration(ROOT / "examples" / example / "config.yaml")
    deployments = [each for each in documents(example) if each["kind"] == "Deployment"]
    assert {each["spec"]["template"]["spec"]["schedulerName"] for each in deployments} == set(profiles)


@every_example
def test_the_files_that_its_page_names_are_there(example: str) -> None:
    folder = ROOT / "examples" / example
    text = (folder / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:examples|deploy|tests)/[\w./-]*\w", text))
    assert {f"examples/{example}/config.yaml", f"examples/{example}/workloads.yaml"} <= named
    assert [each for each in named if not (ROOT / each).exists()] == []
    assert [each for each in re.findall(r"\]\(([^)]+)\)", text) if not (folder / each).exists()] == []


def test_there_is_one_for_each_of_these_policies_and_a_test_for_each_example() -> None:
    assert {each.name for each in (ROOT / "examples").iterdir() if each.is_dir()} >= {"01-first-plugin", *POLICIES}
    text = (ROOT / "tests" / "controlplane" / "test_examples.py").read_text(encoding="utf-8")
    assert [each for each in ("01-first-plugin", *POLICIES) if f'"{each}"' not in text] == []
