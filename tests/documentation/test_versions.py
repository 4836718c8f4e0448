"""docs/kubernetes-versions.md: the tested versions are those that are built, and the followed one is the program's."""

from __future__ import annotations

import re

from stowplan.apps.followed_version import KUBERNETES
from tests.controlplane import build, test_servers
from tests.controlplane.build import minor
from tests.controlplane.conftest import ON_EACH_SERVER
from tests.documentation.pages import ROOT

PAGE = (ROOT / "docs" / "kubernetes-versions.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (1\.\d+) \| yes \| ([\d.]+) \| (.*?) \|", PAGE, re.MULTILINE)


def test_the_tested_versions_are_those_that_are_built() -> None:
    assert [(version, built) for version, built, _ in ROWS] == [(minor(each), each) for each in build.VERSIONS[::-1]]


def test_the_short_set_runs_on_all_but_the_main_version() -> None:
    assert {minor(each) for each in test_servers.OTHERS} == {row[0] for row in ROWS if row[2] == "the short set"}
    each_server = {build.MAIN: "plane", build.NEXT: "plane_137"}
    names = {each_server.get(version, version) for version in build.VERSIONS}
    assert {each.values[0] for each in ON_EACH_SERVER} == names


def test_the_followed_version_is_the_programs() -> None:
    assert f"**Those of kube-scheduler {KUBERNETES}, on every server.**" in PAGE
    assert minor(build.MAIN) == KUBERNETES and f"kube-scheduler v{build.MAIN}" in PAGE


def test_the_recorder_is_of_that_version() -> None:
    script = (ROOT / "tests" / "oracle" / "build.sh").read_text(encoding="utf-8")
    assert f"version={build.MAIN}\n" in script
