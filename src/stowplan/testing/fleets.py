"""Fleets for tests of cluster policies: `a_fleet(a_managed_cluster("alder", cpu=8))`, and what is chosen of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stowplan.apps.place.configuration import load_policy
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.views import Clusters, WholeFleet
from stowplan.framework.config.document import suggestion
from stowplan.framework.placement.choice import PlacementQuestion
from stowplan.framework.placement.evaluation import choose, finished
from stowplan.framework.placement.random_fleets import NOW, check_objects, in_one_set, table_of
from stowplan.objects import kinds
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from stowplan.testing.builders import a_taint


def a_managed_cluster(
    name: str = "cluster",
    *,
    cpu: str | int | None = None,
    memory: str | int | None = None,
    resources: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    claims: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
) -> ManagedCluster:
    """Return a cluster of a fleet; `resources` are allocatable beyond cpu and memory.

    a_managed_cluster("alder", cpu=8, labels={"region": "eu"}, claims={"tier": "gold"}, taints=["slow:NoSelect"])
    """
    given = {key: str(value) for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    reported = given | {key: str(value) for key, value in (resources or {}).items()}
    return kinds.convert(
        ManagedCluster,
        {
            "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})},
            "spec": {"hubAcceptsClient": True, "taints": [a_taint(text) for text in taints]},
            "status": {
                "allocatable": reported,
                "capacity": reported,
                "clusterClaims": [{"name": key, "value": value} for key, value in (claims or {}).items()],
            },
        },
    )


def a_score(cluster: str, name: str, **scores: int) -> AddOnPlacementScore:
    """Return the scores that an AddOnPlacementScore of this name has for a cluster.

    a_score("alder", "prices", hourly=70)
    """
    values = [{"name": key, "value": value} for key, value in scores.items()]
    document = {"metadata": {"name": name, "namespace": cluster}, "status": {"scores": values}}
    return kinds.convert(AddOnPlacementScore, document)


def a_placement(
    name: str = "placement",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Placement:
    """Return a placement; any other keyword is a field of the spec, in the API's spelling.

    a_placement("shop", labels={"data-residency": "eu"}, numberOfClusters=1)
    """
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{namespace}-{name}"}
    more = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return kinds.convert(Placement, {"metadata": metadata | more, "spec": spec})


def a_fleet(*objects: Object, has: Iterable[str] = (), decisions: Mapping[str, int] | None = None) -> Clusters:
    """Return the `Clusters` that methods of cluster policies get, also for `refused` and `scored`.

        fleet = a_fleet(a_managed_cluster("alder", cpu=8), a_score("alder", "prices", hourly=70))

    `has`: the names of the clusters that the placement has already. `decisions`: how many decisions of other placements
    list a cluster, `decisions={"alder": 2}`; PlacementDecisions among the objects count, too. An object that a fleet
    has no place for, such as a Placement, is a TypeError.
    """
    table = _table(objects, names := tuple(has), decisions)
    return WholeFleet(table, NOW, table.rows(names)).clusters


def _table(objects: Sequence[Object], has: Sequence[str], decisions: Mapping[str, int] | None) -> Fleet:
    check_objects(objects)
    clusters = [each.name for each in objects if isinstance(each, ManagedCluster)]
    table = table_of(objects, has)
    for name, count in (decisions or {}).items():
        if name not in clusters:
            remedy = suggestion(name, clusters) or f"there is {', '.join(clusters) or 'none'}"
            raise ValueError(f"decisions names {name!r}, and there is no such cluster; {remedy}")
        table.count_decision([name], count)
    return table


def chosen(
    placement: Placement,
    *objects: Object,
    has: Iterable[str] = (),
    decisions: Mapping[str, int] | None = None,
    config: Path | None = None,
) -> list[str]:
    """Return the clusters that a placement gets, best first, of these clusters and scores.

        assert chosen(a_placement(numberOfClusters=1), *clusters, config=Path("config.yaml")) == ["alder"]

    `config`: the file of a PlacementConfiguration; plugins `file.py:Class` are loaded from its folder. `has`: the names
    of the clusters that the placement has already; `decisions`: as for `a_fleet`. A placement that cannot be decided
    raises ConfigError.
    """
    if config is not None and not isinstance(config, Path):
        raise TypeError(f"config is {config!r}, and must be a Path: chosen(…, config=Path({str(config)!r}))")
    table = _table(objects, names := tuple(has), decisions)
    question = PlacementQuestion(placement, table, NOW, table.rows(names))
    sets, policy = in_one_set(table, placement.namespace), load_policy(config).policy
    choice = finished(lambda: choose(question, sets, policy))
    if choice.status.failed:
        raise ConfigError(choice.status.text, path=choice.status.plugin)
    return choice.names
