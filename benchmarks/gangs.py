"""What it costs to place pods in gangs, whole way through the engine: gangs of 3, 30 and 1,000 against single pods.

Each gang has a name of its own, as gangs do. Both sides run with Coscheduling in their profile. What fits is taken
away again off the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter

from benchmarks import stepping
from benchmarks.figures import Comparison
from benchmarks.race import Lane, compared, race
from benchmarks.stepping import Stage
from benchmarks.yardstick import Yardstick
from stowplan.apps import wiring
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Bind
from stowplan.objects.applications import KUBENEXUS

NAME, SIZES, PODS = "gangs", (3, 30, 1000), 120


def run(rounds: int) -> Iterator[Comparison]:
    profile = _profile()
    for size in SIZES:
        stages = Stage(profile), Stage(profile)
        pods = max(PODS, size)
        lanes = [
            Lane(_gangs(stages[1], size, pods // size), Yardstick(stages[1].scheduler.state)),
            Lane(_gangs(stages[0], 1, pods), Yardstick(stages[0].scheduler.state)),
        ]
        race(lanes, max(rounds // 4, 3) if size > PODS else rounds)
        title = f"single pods, against gangs of {size:,}"
        yield compared(NAME, title, lanes, "pods/s of gangs over those of single pods", nodes=stepping.NODES, pods=pods)


def _profile() -> Profile:
    sort = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}, "queueSort": sort}}],
    }
    return wiring.configured(document)[1]["default-scheduler"]


def _gangs(stage: Stage, size: int, number: int) -> Callable[[], tuple[float, int]]:
    names = count()

    def batch() -> tuple[float, int]:
        seconds, gone = 0.0, []
        for name in (f"gang-{size}-{next(names)}" for _ in range(number)):
            labels = {f"{KUBENEXUS}/name": name, f"{KUBENEXUS}/min-available": str(size)} if size > 1 else {}
            pods = list(stepping._some(size, {"containers": [stepping._container()]}, labels, prefix=name))
            start = perf_counter()
            for pod in pods:
                stage.submit(pod)
            actions = stage.step()
            gone += stage.answer(actions, {pod.uid: pod for pod in pods})
            seconds += perf_counter() - start
            assert sum(isinstance(action, Bind) for action in actions) == size
        stage.remove(gone)
        return seconds, len(gone)

    return batch
