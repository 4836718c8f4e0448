"""The pages of `stowplan run`, beside those that every program has.

/configz                              the configuration in force
/debug/decisions                      what is decided, as it happens: a line of JSON each, without end
/debug/decisions/NAMESPACE/POD        the last decision about a pod
/debug/explain/NAMESPACE/POD          where a pod would go now, what keeps it from a node, and what would help
/debug/podgroups                      the pod groups
/debug/pprof/profile                  CPU time by stack, if profiling is on
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stowplan.apps import json_output
from stowplan.apps.engine_pages import engine_pages, json_response, read_engine
from stowplan.apps.http_server import Pages
from stowplan.apps.profiling import page as profiling
from stowplan.apps.run.service import SchedulerService
from stowplan.engine.scheduler import Scheduler
from stowplan.objects.pods import Pod
from stowplan.serving import web

READ_WITHIN = 5.0  # seconds


def of(service: SchedulerService, loop: asyncio.AbstractEventLoop) -> Pages:
    """`loop` is the engine's: a page that reads the engine does so there."""

    async def configz(_request: web.PageRequest) -> web.PageResponse:
        configuration = msgspec.to_builtins(service.loaded.configuration, enc_hook=str)
        return json_response({"kubescheduler.config.k8s.io": configuration})

    async def read(reading: Coroutine[Any, Any, dict[str, Any] | None], absent: str) -> web.PageResponse:
        try:
            found = await read_engine(reading, loop, READ_WITHIN)
        except TimeoutError:
            return json_response({"message": "the engine is busy"}, status=503)
        return json_response({"message": absent}, status=404) if found is None else json_response(found)

    async def decision(request: web.PageRequest) -> web.PageResponse:
        key = f"{request.match_info['namespace']}/{request.match_info['pod']}"
        return await read(_last_decision(service, key), f"no decision about {key} is remembered")

    async def decisions(request: web.PageRequest) -> web.PageResponse:
        async def may_list(namespace: str) -> bool:
            return await request.may({"verb": "list", "group": "", "resource": "pods", "namespace": namespace})

        lines = service.decision_stream.follow(may_list)
        return web.StreamedResponse(lines, content_type="application/x-ndjson")

    async def explain(request: web.PageRequest) -> web.PageResponse:
        key = f"{request.match_info['namespace']}/{request.match_info['pod']}"
        return await read(_explained(service, key), f"{key} is no pod of this scheduler")

    async def podgroups(_request: web.PageRequest) -> web.PageResponse:
        return await read(_pod_groups(service), "")

    pages = engine_pages(service, service.engine_loop, service.metrics.text)
    pages.get |= {
        "/configz": configz,
        "/debug/decisions": decisions,
        "/debug/decisions/{namespace}/{pod}": decision,
        "/debug/explain/{namespace}/{pod}": explain,
        "/debug/podgroups": podgroups,
        profiling.PATH: profiling.profile_page(
            lambda: service.options.serves_profiles(service.loaded.configuration), loop
        ),
    }
    return pages


async def _last_decision(service: SchedulerService, key: str) -> dict[str, Any] | None:
    reflector = service.reflectors.get("Pod")
    pod = None if reflector is None else reflector.cache.objects.get(key)
    found = None if pod is None else service.engine_loop.engine.decisions.latest(pod.uid)
    return None if found is None else json_output.decision(found)


async def _explained(service: SchedulerService, key: str) -> dict[str, Any] | None:
    from stowplan.apps.run import explain_page  # seldom needed: a scheduler should be small

    reflectors = service.reflectors
    pod = reflectors["Pod"].cache.objects.get(key) if "Pod" in reflectors else None
    if not isinstance(pod, Pod):
        return None
    sets = reflectors["ReplicaSet"].cache.objects if "ReplicaSet" in reflectors else {}
    return explain_page.explained(service.engine_loop.engine, pod, sets, time.monotonic())


async def _pod_groups(service: SchedulerService) -> dict[str, Any]:
    now = time.monotonic()
    return pod_groups(service.engine_loop.engine, now, datetime.now(UTC) - timedelta(seconds=now))


def pod_groups(engine: Scheduler, now: float, start: datetime) -> dict[str, Any]:
    """Return the body of /debug/podgroups. Reading it changes nothing in the engine."""
    return json_output.pod_groups(engine.groups.recent(now), start)
