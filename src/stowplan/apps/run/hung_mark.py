"""The mark on a pod over which a plugin hung until the scheduler had to end: the next leader tries such pods last.

The mark says how often that happened. Each time the pod waits for longer, so one pod cannot end the scheduler again and
again.

It is written from a thread and over a connection of its own, since the scheduler's own event loop does not turn.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from stowplan.engine import messages
from stowplan.kube import action_requests
from stowplan.kube.client import Client
from stowplan.objects.pods import Pod

WITHIN = 2.0  # seconds


async def write(client: Client, pod: Pod, problem: str) -> None:
    """Set the pod's condition."""
    action = messages.ended(pod, problem)
    try:
        async with asyncio.timeout(WITHIN):
            for request in action_requests.for_pod(action, pod, datetime.now(UTC)):
                (await client.send(request)).checked("the condition cannot be written")
    finally:
        await client.close()
