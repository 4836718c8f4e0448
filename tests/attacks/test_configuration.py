"""The configuration file changes under a running scheduler, to something that nobody should write there: it is refused,
once and with a reason, the old one stays in force, and pods are bound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.survivor import unharmed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, stowplan

pytestmark = pytest.mark.controlplane

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LEASE = "leaderElection: {leaderElect: true, resourceName: attacked-configuration, retryPeriod: 1s}\n"
FINE = HEAD + LEASE + "profiles: [{schedulerName: stowplan}]\n"
BOMB = FINE + "x:\n- &a0 {k: v}\n" + "".join(f"- &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
NUMERIC = HEAD + (
    "profiles: [{schedulerName: stowplan, plugins: {multiPoint: {enabled: [{name: FlavourClusterWide}]}},"
    " pluginConfig: [{name: FlavourClusterWide, args: {1: x}}]}]\n"
)
ENDLESS = """
class Endless:
    def __init__(self, how: str = "") -> None:
        while how:
            pass

    def score(self, pod, nodes):
        return None
"""
WITH_CODE = HEAD + LEASE + (
    'profiles: [{schedulerName: stowplan, plugins: {score: {enabled: [{name: "endless.py:Endless"}]}},'
    ' pluginConfig: [{name: "endless.py:Endless", args: {how: "%s"}}]}]\n'
)  # fmt: skip


class Reloading:
    """A leader with a file that is replaced."""

    def __init__(self, file: Path, program: Stowplan) -> None:
        self._file, self.program = file, program

    def put(self, content: str | bytes) -> None:
        """All at once, as a kubelet does."""
        other = self._file.with_suffix(".new")
        other.write_bytes(content.encode() if isinstance(content, str) else content)
        other.replace(self._file)

    @property
    def refusals(self) -> list[str]:
        lines = self.program.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if "is refused" in line]

    @property
    def in_force(self) -> Any:
        return json.loads(self.program.page("/configz"))


@pytest.fixture(scope="module")
def reloading(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reloading]:
    folder = tmp_path_factory.mktemp("reloaded")
    file = folder / "config.yaml"
    (folder / "endless.py").write_text(ENDLESS)
    file.write_text(WITH_CODE % "")  # so that the plugin is imported
    with (
        plane.nodes(1, prefix="configuration"),
        stowplan(plane, "configuration", "--config", str(file), "--plugin-path", str(folder)) as program,
    ):
        program.wait_until_leading()
        yield Reloading(file, program)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param("", "the configuration is empty", id="empty"),
        pytest.param(b"\xff\xfe\x00", "is not UTF-8 text", id="no text"),
        pytest.param(NUMERIC, "unknown argument '1'", id="a number as a key of arguments"),
        pytest.param(BOMB, "found more than 100,000 values", id="merge keys of merge keys"),
        pytest.param(FINE.replace("1s", f"'{'1' * 5000}'"), "expected a duration", id="a duration of 5,000 digits"),
        pytest.param(
            WITH_CODE % "x", "within 20 s", id="a constructor without an end", marks=pytest.mark.full
        ),  # its thread runs on beside the program: the last test of this scheduler
    ],
)
def test_it_is_refused_and_the_old_one_stays(
    plane: ControlPlane, namespace: str, reloading: Reloading, content: str | bytes, problem: str
) -> None:
    before = reloading.in_force
    with unharmed(plane, namespace, reloading.program):
        told = len(reloading.refusals)
        reloading.put(content)
        until("it is refused", lambda: len(reloading.refusals) > told, 60, reloading.program.explain)
    assert reloading.in_force == before
    assert reloading.program.answers("/leader") == "leading\n"
    assert len(reloading.refusals) == told + 1 and problem in reloading.refusals[-1]
