"""A journal of a `World`: everything that went into its scheduler, as JSON lines, and its replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.actions import Action
from stowplan.objects.changes import Gone, Put, Result


def a_line(now: float, change: Put | Gone | Result | None) -> bytes:
    """Return the line of a change that came in at this time, or (None) of a step."""
    line: dict[str, Any] = {"now": now}
    if isinstance(change, Result):
        line["result"] = change
    elif change is not None:
        line["gone" if isinstance(change, Gone) else "put"] = change.object
        line["kind"] = type(change.object).__name__
    return msgspec.json.encode(line, enc_hook=str)


def replayed(journal: Iterable[bytes], profiles: Mapping[str, Profile], seed: int = 0, **options: Any) -> list[Action]:
    """Return the actions of a new scheduler that is given the same changes and steps at the same times."""
    actions: list[Action] = []
    types = dict(kinds.KINDS)
    for profile in profiles.values():
        types |= profile.own_types
    for line in map(msgspec.json.decode, journal):
        if "restart" in line:
            scheduler = Scheduler(profiles, np.random.default_rng(seed), **options)
            continue
        if "result" in line:
            actions += scheduler.handle(msgspec.convert(line["result"], Result), line["now"])
        elif "kind" in line:
            found = kinds.convert(types[line["kind"]], line.get("put") or line["gone"])
            actions += scheduler.handle(Put(found) if "put" in line else Gone(found), line["now"])
        elif "allow" in line:
            uid, plugin = line["allow"]
            actions += scheduler.allow(uid, plugin, line["now"])
        elif "reject" in line:
            uid, plugin, message = line["reject"]
            actions += scheduler.reject(uid, plugin, message, line["now"])
        else:
            actions += scheduler.step(line["now"])
    return actions
