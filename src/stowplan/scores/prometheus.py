"""One PromQL query, asked of Prometheus or of whatever speaks its API (Thanos, Mimir): a value for each cluster.

A label of the result names the cluster. Only an instant vector will do, with one sample for each cluster: where there
are several, nobody could say which one was meant, so the query should aggregate `by (<label>)`.
"""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from stowplan.kube.responses import RefusedError, Response
from stowplan.scores.http_source import AnswerError, HttpSource, placed

PATH = "/api/v1/query"
T = TypeVar("T")


class Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _QueryReply(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error: str = ""
    error_type: str = ""
    warnings: list[str] = []


class Found(msgspec.Struct):
    """Values by cluster, and what there is to be said about the answer."""

    values: dict[str, float] = {}
    notes: list[str] = []


async def ask(site: HttpSource, query: str, label: str) -> Found:
    """What the query gives now; `RefusedError` or `AnswerError` if that is of no use."""
    return read(await site.get(PATH, {"query": query}), label, f"{site.url}{PATH}")


def read(answer: Response, label: str, what: str) -> Found:
    document = _decoded(answer.body, _QueryReply, answer, what)
    if document.status != "success" or document.data is None:
        raise RefusedError(what, answer.status, f"{document.error_type}: {document.error}")
    if document.data.result_type != "vector":
        found = document.data.result_type
        raise AnswerError(f"{what}: the query gives a {found}, expected an instant vector, a sample for each cluster")
    samples = _decoded(document.data.result, list[Sample], answer, what)
    return _collected(samples, label, what, document.warnings)


def _decoded(text: bytes | msgspec.Raw, kind: type[T], answer: Response, what: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        answer.checked(what)
        problem = placed(error) if isinstance(error, msgspec.ValidationError) else str(error)
        raise AnswerError(f"{what}: the answer is not one of Prometheus' API: {problem}") from None


def _collected(samples: list[Sample], label: str, what: str, warnings: list[str]) -> Found:
    found, nameless, useless = Found(notes=list(warnings)), 0, []
    for sample in samples:
        cluster, value = sample.metric.get(label, ""), _number(sample.value[1])
        if not cluster:
            nameless += 1
        elif cluster in found.values:
            remedy = f"aggregate it, as in: max by ({label}) (…)"
            raise AnswerError(f'{what}: there are several samples with {label}="{cluster}", expected one; {remedy}')
        elif math.isnan(value):
            useless.append(cluster)
        else:
            found.values[cluster] = value
    if nameless:
        found.notes.append(f'{nameless} of {len(samples)} samples have no label "{label}" and are passed over')
    if useless:
        found.notes.append(f"not a number: {', '.join(sorted(useless))}")
    return found


def _number(text: str) -> float:
    """Prometheus writes NaN, +Inf and -Inf beside numbers; what is none of these is not a number, either."""
    try:
        return float(text)
    except ValueError:
        return math.nan
