"""A scorer of your own, over HTTP: it is sent the clusters, and answers with what it thinks of them.

    POST  {"clusters": [{"name": "cluster1", "labels": {…}, "claims": {…}, "allocatable": {…}, "capacity": {…},
                         "kubernetesVersion": "v1.36.4"}], "scores": ["latency"] or null}
    200   {"scores": {"cluster1": {"latency": 80, "sla": 55}}}

`scores` in the question are those that Placements want, null if every one will do. A cluster that is left out of the
answer keeps its scores until they expire.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stowplan.kube.responses import Response
from stowplan.objects.clusters import ManagedCluster
from stowplan.scores.demand import Demand
from stowplan.scores.http_source import AnswerError, HttpSource, placed


class _ScorerReply(msgspec.Struct):
    scores: dict[str, dict[str, float]]


async def ask(site: HttpSource, clusters: Iterable[ManagedCluster], wanted: Demand) -> dict[str, dict[str, float]]:
    """Values by cluster and score."""
    return read(await site.post(question(clusters, wanted)), site.url)


def question(clusters: Iterable[ManagedCluster], wanted: Demand) -> dict[str, Any]:
    names = None if wanted.everything else sorted(wanted.names)
    return {"clusters": [_described(each) for each in clusters], "scores": names}


def _described(cluster: ManagedCluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "labels": cluster.labels,
        "claims": cluster.claims,
        "allocatable": {name: str(text) for name, text in cluster.status.allocatable.items()},
        "capacity": {name: str(text) for name, text in cluster.status.capacity.items()},
        "kubernetesVersion": cluster.status.version.kubernetes,
    }


def read(answer: Response, what: str) -> dict[str, dict[str, float]]:
    answer.checked(f"POST {what}")
    try:
        return msgspec.json.decode(answer.body, type=_ScorerReply).scores
    except msgspec.ValidationError as error:
        expected = 'expected {"scores": {"<cluster>": {"<score>": <number>}}}'
        raise AnswerError(f"{what}: {placed(error)}; {expected}") from None
    except msgspec.DecodeError as error:
        raise AnswerError(f"{what}: the answer is not JSON: {error}") from None
