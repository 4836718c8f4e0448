"""What it costs to place pods in gangs, with Coscheduling in the profile of all sides.

gangs             whole way through the engine: gangs of 3, 30 and 1,000 against single pods
gangs-infeasible  one attempt at a gang of 1,000 of which the last finds no node, against one that fits: members all
                  alike, and of two sizes, so that a second order is tried
gangs-in-vain     the same gang more important than 20,000 pods around, whose eviction would not make it fit either
                  (by resources, or because its members must be on different nodes)
gangs-outage      a gang of 1,000 whose bindings all fail, and fail again: a pod of it, against one of a gang of 100
gangs-memory      what a scheduler with gangs weighs that has nothing to do (`group_memory.py`)

Each gang has a name of its own, as gangs do. What fits is taken away again off the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter

from benchmarks import group_memory, stepping
from benchmarks.figures import Comparison
from benchmarks.interleaving import compared
from benchmarks.stepping import EngineDriver
from stowplan.apps import profile_loader
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.engine.pods import assumed
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Bind, Evict
from stowplan.objects.applications import KUBENEXUS
from stowplan.objects.pods import Pod

NAME, SIZES, PODS = "gangs", (3, 30, 1000), 120
LARGE, AROUND, PRIORITY = 1000, 20_000, 1000
ALIKE, TWO_SIZES = ("3",), ("3", "2500m")  # cores; a node has room for one of them
APART = ("1",)  # a node has room for several, but no two may be on one node
SMALL = 100


def run(rounds: int) -> Iterator[Comparison]:
    profile = _profile()
    yield from _against_single_pods(profile, rounds)
    few = max(rounds // 4, 3)
    yield _attempts(f"{NAME}-infeasible", f"a gang of {LARGE:,} that does not fit", profile, ALIKE, 0, few)
    yield _attempts(f"{NAME}-infeasible", "the same with two sizes of pods", profile, TWO_SIZES, 0, few)
    yield _attempts(f"{NAME}-in-vain", f"one of {LARGE:,}, among {AROUND:,} pods", profile, ALIKE, AROUND, few)
    apart = f"the same, whose members must be apart, among {AROUND:,} pods"
    yield _attempts(f"{NAME}-in-vain", apart, profile, APART, AROUND, few)
    yield _outages(few)
    yield from group_memory.run()


# -- gangs that fit, against single pods


def _against_single_pods(profile: Profile, rounds: int) -> Iterator[Comparison]:
    for size in SIZES:
        drivers = EngineDriver(profile), EngineDriver(profile)
        pods = max(PODS, size)
        measurements = [
            Measurement(_gangs(drivers[1], size, pods // size), Yardstick(drivers[1].scheduler.state)),
            Measurement(_gangs(drivers[0], 1, pods), Yardstick(drivers[0].scheduler.state)),
        ]
        interleave(measurements, max(rounds // 4, 3) if size > PODS else rounds)
        title = f"single pods, against gangs of {size:,}"
        yield compared(
            NAME, title, measurements, "pods/s of gangs over those of single pods", nodes=stepping.NODES, pods=pods
        )


def _gangs(driver: EngineDriver, size: int, number: int) -> Callable[[], tuple[float, int]]:
    names = count()

    def batch() -> tuple[float, int]:
        seconds, gone = 0.0, []
        for name in (f"gang-{size}-{next(names)}" for _ in range(number)):
            labels = _labels(name, size) if size > 1 else {}
            pods = list(stepping._some(size, {"containers": [stepping._container()]}, labels, prefix=name))
            start = perf_counter()
            for pod in pods:
                driver.submit(pod)
            actions = driver.step()
            gone += driver.answer(actions, {pod.uid: pod for pod in pods})
            seconds += perf_counter() - start
            assert sum(isinstance(action, Bind) for action in actions) == size
        driver.remove(gone)
        return seconds, len(gone)

    return batch


# -- one attempt at a large one


def _attempts(
    workload: str, case: str, profile: Profile, cores: tuple[str, ...], around: int, rounds: int
) -> Comparison:  # fmt: skip
    """Compare a group that lacks one node with one that does not. `around`: pods of a lower priority on all nodes."""
    measurements = []
    for pool in (LARGE, LARGE - 1):
        driver = EngineDriver(profile, stepping._with_pool(pool))
        _surround(driver, around)
        measurements.append(Measurement(_attempt(driver, cores, fits=pool == LARGE), Yardstick(driver.scheduler.state)))
    interleave(measurements, rounds)
    return compared(workload, case, measurements, "against one that does", nodes=stepping.NODES, pods=LARGE)


def _attempt(driver: EngineDriver, cores: tuple[str, ...], *, fits: bool) -> Callable[[], tuple[float, int]]:
    names = count()

    def batch() -> tuple[float, int]:
        name = f"gang-{next(names)}"
        pods = list(_members(name, cores))
        for pod in pods:
            driver.submit(pod)
        start = perf_counter()
        actions = driver.step()
        seconds = perf_counter() - start
        assert sum(isinstance(action, Bind) for action in actions) == (LARGE if fits else 0)
        assert not any(isinstance(action, Evict) for action in actions), "no eviction in vain"
        driver.answer(actions, {pod.uid: pod for pod in pods})
        driver.remove(pods)
        return seconds, 1

    return batch


def _members(name: str, cores: tuple[str, ...]) -> Iterator[Pod]:
    """As many of each size."""
    for cpu in cores:
        container = stepping._container(cpu=cpu)
        spec = {"containers": [container], "nodeSelector": {"pool": "of-the-group"}, "priority": PRIORITY}
        if cores == APART:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _labels(name, LARGE)}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield from stepping._some(LARGE // len(cores), spec, _labels(name, LARGE), prefix=f"{name}-{cpu}")


def _surround(driver: EngineDriver, number: int) -> None:
    names = driver.scheduler.state.table.names
    for at, pod in enumerate(stepping._some(number, {"containers": [stepping._container()]}, prefix="low")):
        driver.submit(assumed(pod, names[at % stepping.NODES]))


# -- bindings that fail


def _outages(rounds: int) -> Comparison:
    measurements = []
    for size in (SMALL, LARGE):
        driver = EngineDriver(_profile(matchPolicy="only-waiting"))
        measurements.append(Measurement(_failing(driver, size), Yardstick(driver.scheduler.state)))
    interleave(measurements, rounds)
    note = f"a pod of it, against one of a gang of {SMALL}"
    return compared(f"{NAME}-outage", f"a gang of {LARGE:,}", measurements, note, nodes=stepping.NODES, pods=LARGE)


def _failing(driver: EngineDriver, size: int) -> Callable[[], tuple[float, int]]:
    names = count()

    def batch() -> tuple[float, int]:
        """The first bindings fail off the clock; the second attempt, with nominated nodes, is measured."""
        name = f"gang-{size}-{next(names)}"
        pods = list(stepping._some(size, {"containers": [stepping._container()]}, _labels(name, size), prefix=name))
        for pod in pods:
            driver.submit(pod)
        driver.refuse(driver.step())
        driver.now += 60
        start = perf_counter()
        refused = driver.refuse(driver.step())
        seconds = perf_counter() - start
        assert refused == size
        driver.remove(pods)
        return seconds, size

    return batch


# -- what both have


def _profile(**args: str) -> Profile:
    sort = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}, "queueSort": sort},
                "pluginConfig": [{"name": "Coscheduling", "args": args}],
            }
        ],
    }
    return profile_loader.configured(document)[1]["default-scheduler"]


def _labels(name: str, size: int) -> dict[str, str]:
    return {f"{KUBENEXUS}/name": name, f"{KUBENEXUS}/min-available": str(size)}
