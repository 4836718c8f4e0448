"""Keep-alive messages to systemd."""

from __future__ import annotations

import asyncio
import io
import os
import socket
from pathlib import Path

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.watchdog.systemd import Notifier
from stowplan.apps.watchdog.watchdog import Watchdog


@pytest.mark.parametrize(
    ("environment", "every"),
    [
        pytest.param({}, 0, id="not under systemd"),
        pytest.param({"NOTIFY_SOCKET": "/run/x"}, 0, id="a unit without WatchdogSec"),
        pytest.param({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "60000000"}, 20, id="a third of WatchdogSec"),
        pytest.param(
            {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, 0, id="for another process"
        ),
        pytest.param({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "soon"}, 0, id="no number"),
    ],
)
def test_how_often(environment: dict[str, str], every: float) -> None:
    assert Notifier(environment).every == every


def test_nobody_listens(tmp_path: Path) -> None:
    Notifier({}).alive()
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).alive()


@pytest.mark.parametrize("abstract", [False, True])
def test_the_loop_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    """Messages come as long as the event loop turns, and no longer."""
    name = f"@stowplan-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name[1:]}" if abstract else name)
        systemd.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)

        async def story() -> None:
            with Watchdog(Log(stream=io.StringIO())):
                for _ in range(3):
                    assert await asyncio.to_thread(systemd.recv, 100) == b"WATCHDOG=1"
                systemd.settimeout(0.5)
                with pytest.raises(TimeoutError):  # here the loop is blocked; one message may be under way
                    systemd.recv(100), systemd.recv(100)

        asyncio.run(story())
