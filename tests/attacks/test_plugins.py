"""Plugins that hang, exit, cancel, cannot be sorted or never stop talking: each costs its own pod, and no other."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.attacks.survivor import SOON_AFTER_RESTART, bind_plain_pod, unharmed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import PYTHON, Stowplan, a_live_pod, bound, condition

PLUGINS = Path(__file__).parent
FILE = "misbehaving.py"
# The program with shorter limits, so that nobody has to wait for 5 and 20 seconds.
IMPATIENT = """
from stowplan.apps.watchdog import watchdog
watchdog.LIMITS = watchdog.WatchdogLimits(slow=0.1, warn=0.3, interrupt=0.6, end=2.0)
from stowplan.apps.cli import main
main()
"""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/bothered"


class Impatient(Stowplan):
    command_line: ClassVar[tuple[str, ...]] = ("-c", IMPATIENT)


def configured(folder: Path, point: str, plugin: str, scheduler: str = "stowplan") -> Path:
    """A configuration with this plugin of ours."""
    enabled: dict[str, Any] = {"enabled": [{"name": f"{FILE}:{plugin}"}]}
    if point == "queueSort":
        enabled["disabled"] = [{"name": "*"}]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": scheduler, "plugins": {point: enabled}}],
    }  # fmt: skip
    file = folder / f"{plugin}.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@contextlib.contextmanager
def bothered(plane: ControlPlane, folder: Path, point: str, plugin: str, *more: str) -> Iterator[Stowplan]:
    """A scheduler with one of the plugins."""
    arguments = ("--config", str(configured(folder, point, plugin)), "--plugin-path", str(PLUGINS), *more)
    with Impatient(plane.kubeconfig(), plane.folder, f"bothered-{plugin}", *arguments) as program:
        program.wait_until_ready()
        yield program


@pytest.fixture(scope="module")
def moody(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stowplan]:
    with (
        plane.nodes(3, prefix="bothered"),
        bothered(plane, tmp_path_factory.mktemp("moody"), "filter", "Moody", "--leader-elect=false") as program,
    ):
        yield program


def create(plane: ControlPlane, namespace: str, name: str, bad: str = "", **spec: Any) -> None:
    pod = a_live_pod(name, cpu="10m", **spec)
    pod["metadata"]["labels"] = {"bad": bad} if bad else {}
    plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


def wait_for_message(plane: ControlPlane, namespace: str, name: str, text: str, program: Program) -> dict[str, Any]:
    """The pod's condition, once its message contains this."""
    found: dict[str, Any] = {}

    def told() -> bool:
        found.update(condition(plane, namespace, name))
        return text in found.get("message", "")

    until(f"the condition of {name} says {text}", told, 40, program.tail)
    return found


def wait_for_event(plane: ControlPlane, namespace: str, name: str, text: str, program: Program) -> None:
    """An event of the pod says this."""

    def said() -> bool:
        found = plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return any(text in each.get("note", "") for each in found if each["regarding"]["name"] == name)

    until(f"an event of {name} says {text}", said, 40, program.tail)


pytestmark = pytest.mark.controlplane


# -- each with a scheduler of its own, before the one that the others share is started


def test_keys_that_cannot_be_compared(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    with (
        plane.nodes(3, prefix="sorted"),
        bothered(plane, tmp_path, "queueSort", "MoodySort", "--leader-elect=false") as program,
        unharmed(plane, namespace, program),
    ):
        for number in range(20):
            create(plane, namespace, f"pod-{number}", "yes" if number % 2 else "")
        good = {f"pod-{number}" for number in range(0, 20, 2)}
        until("good pods are bound", lambda: good <= set(bound(plane, namespace)), 20, program.tail)
        problem = f"plugin \"{FILE}:MoodySort\" failed at sort_key: the key (0, 'yes') is (number, str)"
        wait_for_message(plane, namespace, "pod-19", problem, program)


def test_a_call_that_resists_ends_the_process_and_its_pod_comes_last(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    elected = "--leader-elect=true", "--leader-elect-resource-name=bothered"
    with plane.nodes(3, prefix="resisted"):
        with bothered(plane, tmp_path, "filter", "Moody", *elected) as program:
            bind_plain_pod(plane, namespace, program, within=60)
            create(plane, namespace, "resists", "resists")
            until("the process has ended", lambda: not program.running, 30, program.tail)
            assert program.code == 1
        marked = condition(plane, namespace, "resists")
        assert marked["reason"] == "PluginHung"
        assert f'plugin "{FILE}:Moody" failed at filter: did not answer within 2 s ({FILE}:' in marked["message"]
        assert not plane.api().must("GET", LEASE)["spec"].get("holderIdentity"), "the lease was given back"
        for number in range(5):
            create(plane, namespace, f"later-{number}")
        with bothered(plane, tmp_path, "filter", "Moody", *elected) as program:
            later = {f"later-{number}" for number in range(5)}
            until("all others are bound first", lambda: later <= set(bound(plane, namespace)), SOON_AFTER_RESTART)
            program.kill()
    plane.api().ask("DELETE", LEASE)


# -- with one scheduler, which survives all of them


def test_plugins_that_hang(plane: ControlPlane, namespace: str, moody: Stowplan) -> None:
    with unharmed(plane, namespace, moody):
        for bad in ("loops", "sleeps"):
            create(plane, namespace, bad, bad)
        for bad in ("loops", "sleeps"):
            set_aside = wait_for_message(plane, namespace, bad, "set aside", moody)
            problem = f'plugin "{FILE}:Moody" failed at filter: did not answer within 0.6 s ({FILE}:'
            assert set_aside["reason"] == "PluginHung" and set_aside["message"].startswith(problem)
            wait_for_event(plane, namespace, bad, "set aside", moody)
    assert '"A plugin does not answer" plugin="misbehaving.py:Moody" point="filter"' in moody.log.read_text()
    plane.kubectl("-n", namespace, "label", "pod", "loops", "bad-")
    until("a changed pod is bound", lambda: "loops" in bound(plane, namespace), 20, moody.tail)


def test_plugins_that_raise_what_nobody_expects(plane: ControlPlane, namespace: str, moody: Stowplan) -> None:
    raised = {
        "exits": "SystemExit: 3", "cancels": "CancelledError (", "interrupts": "KeyboardInterrupt (",
        "ends": "GeneratorExit (", "exhausts": "MemoryError (",
    }  # fmt: skip
    with unharmed(plane, namespace, moody):
        for bad in raised:
            create(plane, namespace, bad, bad)
        for bad, error in raised.items():
            problem = f'plugin "{FILE}:Moody" failed at filter: {error}'
            told = wait_for_message(plane, namespace, bad, problem, moody)
            assert told["reason"] == "SchedulerError" and f"({FILE}:" in told["message"]
            wait_for_event(plane, namespace, bad, problem, moody)


def test_reasons_without_end(plane: ControlPlane, namespace: str, moody: Stowplan) -> None:
    resources = {f"example.com/missing-{number:03}": "1" for number in range(200)}
    container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
    with unharmed(plane, namespace, moody):
        create(plane, namespace, "talks", "talks")
        create(plane, namespace, "missing", containers=[container])
        told = wait_for_message(plane, namespace, "talks", "nodes are available", moody)
        assert told["reason"] == "Unschedulable" and len(told["message"]) < 1300
        told = wait_for_message(plane, namespace, "missing", "Insufficient example.com/missing-199", moody)
        assert told["reason"] == "Unschedulable" and "Insufficient example.com/missing-000" in told["message"]
        for name in ("talks", "missing"):
            wait_for_event(plane, namespace, name, "0/3 nodes are available", moody)


# -- without a control plane


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_in_this_process_can_be_ended_while_a_plugin_loops(tmp_path: Path, number: signal.Signals) -> None:
    pod = a_live_pod("loops", scheduler="default-scheduler")
    pod["metadata"] |= {"labels": {"bad": "loops"}, "namespace": "default"}
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    config = configured(tmp_path, "filter", "Moody", "default-scheduler")
    arguments = [
        "-m", "stowplan.apps.cli", "up", "--config", str(config), "--plugin-path", str(PLUGINS), "-v", "2",
        "--from", str(tmp_path / "pod.yaml"), "--kubeconfig", str(tmp_path / "kubeconfig"),
    ]  # fmt: skip
    with Program(PYTHON, arguments, tmp_path / "up.log") as program:
        until("it hangs", lambda: "A plugin does not answer" in program.log.read_text(), 60, program.tail)
        os.kill(program.pid, number)
        until("it has ended", lambda: not program.running, 10, program.tail)
    assert program.code == 0
