"""SPPriority's seed as a whole: its systemd unit, its user, its rights and its files, all as they stand.

Leader election is on, and kube-scheduler's user may hold kube-scheduler's own lease: so that is the lease. The flags in
KUBE_SCHEDULER_EXTEND shorten it, to have tests that end.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.plugins.nodes.sp_priority.plugin import STATE
from tests.apps.test_kube_scheduler_flags import KUBE_SCHEDULER, OF_THE_GROUP
from tests.controlplane import build, unit_process
from tests.controlplane.deployed import Deployed, check_no_limit_met, deployed, holder
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_deployment, apply, pods
from tests.controlplane.unit_process import Machine

pytestmark = pytest.mark.controlplane
SEED = Path(__file__).parents[1] / "seeds" / "sp_priority"
UNIT = (SEED / "kube-scheduler.service").read_text(encoding="utf-8")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
SHORT = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms")


@pytest.fixture
def machine(plane: ControlPlane, tmp_path: Path) -> Iterator[Machine]:
    """A control-plane node with the seed's files, in a cluster with the seed's rights."""
    if reason := unit_process.why_not():
        pytest.skip(reason)
    found = Machine(tmp_path / "machine")
    found.put("/etc/kubernetes/kube-scheduler.conf", plane.kubeconfig("scheduler").read_text())
    found.put("/etc/kubernetes/kube-scheduler.yaml", (SEED / "config.yaml").read_text(encoding="utf-8"))
    found.put("/etc/kubernetes/sppriority.yaml", (SEED / "sppriority.yaml").read_text(encoding="utf-8"))
    found.put("/etc/sysconfig/kube-scheduler.conf", f'KUBE_SCHEDULER_EXTEND="{" ".join(SHORT)} --leader-elect=true"\n')
    documents = [each for each in yaml.safe_load_all((SEED / "rbac.yaml").read_text(encoding="utf-8")) if each]
    for lease in ("kube-scheduler", "stowplan"):
        plane.api().ask("DELETE", f"{LEASES}/{lease}")
    with plane.having(*documents):
        yield found


class Web:
    """The only pod of a Deployment, which is created again whenever it is deleted."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self._namespace, self._seen = plane, namespace, set[str]()
        self.nodes: list[str] = []
        apply(plane, namespace, a_deployment("web", 1, scheduler="default-scheduler"))

    def settles(self, scheduler: Deployed) -> str:
        """Return the node of the next pod."""

        def bound() -> Any:
            living = [
                each for each in pods(self._plane, self._namespace) if not each["metadata"].get("deletionTimestamp")
            ]
            new = [
                each for each in living if each["metadata"]["uid"] not in self._seen and each["spec"].get("nodeName")
            ]
            return new[0] if new else None

        pod = until("the pod is bound", bound, 120, lambda *_: scheduler.program.tail(40))
        self._seen.add(pod["metadata"]["uid"])
        self.nodes.append(pod["spec"]["nodeName"])
        return self.nodes[-1]

    def delete(self) -> None:
        self._plane.api().must("DELETE", f"/api/v1/namespaces/{self._namespace}/pods")

    def history(self) -> Any:
        (owner,) = self._plane.api().must("GET", f"/apis/apps/v1/namespaces/{self._namespace}/replicasets")["items"]
        return json.loads(owner["metadata"].get("annotations", {}).get(STATE, "{}"))

    def check(self, counted: int | None = None) -> None:
        """No pod was where the one before it had been, and each of the first `counted` pods is counted once."""
        assert all(one != another for one, another in pairwise(self.nodes[:counted])), self.nodes
        nodes = self.nodes[:counted]
        expected = {"latest": nodes[-1], "node_count": Counter(nodes)}
        until(f"{expected} is counted", lambda: self.history() == expected, 60, lambda *_: str(self.history()))


def log_of(scheduler: Deployed) -> str:
    return scheduler.program.log.read_text(encoding="utf-8")


def test_the_unit_as_it_stands(machine: Machine, plane: ControlPlane, namespace: str) -> None:
    scheduler = machine.start(plane, UNIT, "sp-unit")
    with scheduler.program as program, plane.nodes(3, prefix="sp"):
        program.wait_until(scheduler.leads)
        assert holder(plane, "kube-scheduler").startswith("stowplan:")
        assert not plane.api().answers(f"{LEASES}/stowplan"), "one lease is enough"
        web = Web(plane, namespace)
        web.settles(scheduler)
        for _ in range(4):
            web.delete()
            web.settles(scheduler)
        web.check()
        # An edit of the policy's own file takes effect: from now on this namespace is left alone.
        edited = (SEED / "sppriority.yaml").read_text(encoding="utf-8").replace("- kube-system", f"- {namespace}")
        machine.put("/etc/kubernetes/sppriority.yaml", edited)
        until("it is in force", lambda: "The configuration is in force" in log_of(scheduler), 60)
        before = len(web.nodes)
        web.delete()
        web.settles(scheduler)
        web.check(counted=before)
        program.stop(grace=90)
    assert program.code == 0, program.tail()
    assert not holder(plane, "kube-scheduler"), "the lease is given back"
    check_no_limit_met(program.log)


def test_another_replica_goes_on_after_a_kill(machine: Machine, plane: ControlPlane, namespace: str) -> None:
    first = machine.start(plane, UNIT, "sp-unit-first")
    with ExitStack() as stack:
        stack.enter_context(first.program)
        first.program.wait_until(first.leads)
        second = machine.start(plane, UNIT, "sp-unit-second")
        stack.enter_context(second.program)
        second.program.wait_until(second.is_ready)
        stack.enter_context(plane.nodes(3, prefix="sp"))
        web = Web(plane, namespace)
        web.settles(first)
        web.delete()
        web.settles(first)
        assert not second.leads(), "it waits, and does not take the other for a kube-scheduler"
        first.program.kill()
        second.program.wait_until(second.leads)
        web.delete()
        web.settles(second)
        web.check()
        second.program.stop(grace=90)
    assert second.program.code == 0, second.program.tail()


CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler"}],
}


def test_of_two_at_different_leases_one_leads(machine: Machine, plane: ControlPlane, tmp_path: Path) -> None:
    """One has the rights of deploy/rbac.yaml, and so the lease stowplan. Each sees the other lease, and waits."""
    waits, folders = "another Stowplan holds the other lease", [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        with deployed(plane, folders[0], CONFIGURATION, SHORT) as scheduler:
            unit = machine.start(plane, UNIT, "sp-unit-beside")
            stack.enter_context(unit.program)
            unit.program.wait_until(lambda: waits in log_of(unit))
            assert scheduler.leads() and not unit.leads()
        unit.program.wait_until(unit.leads)
        again = stack.enter_context(deployed(plane, folders[1], CONFIGURATION, SHORT, waits=True))
        again.program.wait_until(lambda: waits in log_of(again))
        assert not again.leads() and unit.leads()
        unit.program.stop(grace=90)
        again.program.wait_until(again.leads)
    assert unit.program.code == 0, unit.program.tail()


def test_kube_schedulers_own_help_names_the_flags_that_we_know(plane: ControlPlane) -> None:
    program = build.programs(plane.version)["kube-scheduler"]
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    found = {*re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", text, flags=re.MULTILINE)}
    assert found | {*OF_THE_GROUP} == {*KUBE_SCHEDULER} | {*OF_THE_GROUP}
