"""A plugin whose pods say what goes wrong with it: the label `trouble`. A scheduler loads it from this file."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from stowplan.framework.interfaces import Drift


class Troubled:
    recount_every = 1.0

    def filter(self, pod: Any, nodes: Any) -> Iterator[Any]:
        match pod.labels.get("trouble"):
            case "raises":
                raise ValueError("this pod has trouble")
            case "slow":
                time.sleep(0.2)
        yield from ()

    def recount(self, pods: Iterable[Any], cluster: Any) -> Iterator[Drift]:
        found = sum(pod.labels.get("trouble") == "drift" for pod in pods)
        if found:
            yield Drift("pods in trouble", 0, found)
