"""docs/kubernetes-versions.md: the tested versions are those that are built, and the followed one is the program's."""

from __future__ import annotations

import re

from stowplan.apps.followed_version import KUBERNETES
from tests.controlplane import build
from tests.documentation.pages import ROOT

PAGE = (ROOT / "docs" / "kubernetes-versions.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (1\.[\d., ]+?) \| (yes|no) \|", PAGE, re.MULTILINE)


def minor(version: str) -> str:
    return version.rpartition(".")[0]


def test_the_tested_versions_are_those_that_are_built() -> None:
    tested = {version for versions, answer in ROWS if answer == "yes" for version in versions.split(", ")}
    assert tested == {*map(minor, build.VERSIONS)}


def test_the_followed_version_is_the_programs() -> None:
    assert f"**Those of kube-scheduler {KUBERNETES}, on every server.**" in PAGE
    assert minor(build.MAIN) == KUBERNETES and f"kube-scheduler v{build.MAIN}" in PAGE


def test_the_recorder_is_of_that_version() -> None:
    script = (ROOT / "tests" / "oracle" / "build.sh").read_text(encoding="utf-8")
    assert f"version={build.MAIN}\n" in script
