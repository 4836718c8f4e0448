"""A custom scorer over HTTP: it gets the clusters, and responds with their scores.

    POST  {"clusters": [{"name": "cluster1", "labels": {…}, "claims": {…}, "allocatable": {…}, "capacity": {…},
                         "kubernetesVersion": "v1.36.4"}], "scores": ["latency"] or null}
    200   {"scores": {"cluster1": {"latency": 80, "sla": 55}}}

`scores` in the request are the scores that Placements use, null for all. A cluster that is missing in the response
keeps its scores until they expire.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stowplan.kube.responses import Response
from stowplan.objects.clusters import ManagedCluster
from stowplan.scores.demand import Demand
from stowplan.scores.http_source import AnswerError, HttpSource, with_path


class _ScorerReply(msgspec.Struct):
    scores: dict[str, dict[str, float]]


async def ask(source: HttpSource, clusters: Iterable[ManagedCluster], demand: Demand) -> dict[str, dict[str, float]]:
    """Values by cluster and score."""
    return read(await source.post(request_body(clusters, demand)), source.url)


def request_body(clusters: Iterable[ManagedCluster], demand: Demand) -> dict[str, object]:
    names = None if demand.everything else sorted(demand.names)
    return {"clusters": [_description(each) for each in clusters], "scores": names}


def _description(cluster: ManagedCluster) -> dict[str, object]:
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
        raise AnswerError(f"{what}: {with_path(error)}; {expected}") from None
    except msgspec.DecodeError as error:
        raise AnswerError(f"{what}: the answer is not JSON: {error}") from None
