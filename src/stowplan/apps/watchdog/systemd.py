"""Keep-alive messages to systemd (`WatchdogSec=` in a unit): without them systemd starts the service again."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends to the socket that systemd names in the environment; without one it does nothing."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        wanted = environment.get("WATCHDOG_USEC", "")
        for_us = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.every = int(wanted) / 3e6 if self._address and wanted.isdigit() and for_us else 0.0  # seconds; 0: never

    def alive(self) -> None:
        """Say that the program works."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto(b"WATCHDOG=1", self._address)
        except OSError:
            return  # the next one may arrive; if none does, that is for systemd to deal with
