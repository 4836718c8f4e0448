"""One PromQL query to Prometheus, or to a server with the same API (Thanos, Mimir): a value for each cluster.

A label of the result names the cluster. The result must be an instant vector with one sample for each cluster; a query
with several samples should aggregate `by (<label>)`.
"""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from stowplan.kube.responses import RefusedError, Response
from stowplan.scores.http_source import AnswerError, HttpSource, with_path

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


class QueryResult(msgspec.Struct):
    """Values by cluster, and notes about the response."""

    values: dict[str, float] = {}
    notes: list[str] = []


async def ask(source: HttpSource, query: str, label: str) -> QueryResult:
    """The result of the query. Raises `RefusedError` or `AnswerError` if it cannot be used."""
    return read(await source.get(PATH, {"query": query}), label, f"{source.url}{PATH}")


def read(answer: Response, label: str, what: str) -> QueryResult:
    document = _decoded(answer.body, _QueryReply, answer, what)
    if document.status != "success" or document.data is None:
        raise RefusedError(what, answer.status, f"{document.error_type}: {document.error}")
    if document.data.result_type != "vector":
        found = document.data.result_type
        raise AnswerError(f"{what}: the query gives a {found}, expected an instant vector, a sample for each cluster")
    samples = _decoded(document.data.result, list[Sample], answer, what)
    return _by_cluster(samples, label, what, document.warnings)


def _decoded(text: bytes | msgspec.Raw, kind: type[T], answer: Response, what: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        answer.checked(what)
        problem = with_path(error) if isinstance(error, msgspec.ValidationError) else str(error)
        raise AnswerError(f"{what}: the answer is not one of Prometheus' API: {problem}") from None


def _by_cluster(samples: list[Sample], label: str, what: str, warnings: list[str]) -> QueryResult:
    found, unlabelled, not_numbers = QueryResult(notes=list(warnings)), 0, []
    for sample in samples:
        cluster, value = sample.metric.get(label, ""), _number(sample.value[1])
        if not cluster:
            unlabelled += 1
        elif cluster in found.values:
            remedy = f"aggregate it, as in: max by ({label}) (…)"
            raise AnswerError(f'{what}: there are several samples with {label}="{cluster}", expected one; {remedy}')
        elif math.isnan(value):
            not_numbers.append(cluster)
        else:
            found.values[cluster] = value
    if unlabelled:
        found.notes.append(f'{unlabelled} of {len(samples)} samples have no label "{label}" and are skipped')
    if not_numbers:
        found.notes.append(f"not a number: {', '.join(sorted(not_numbers))}")
    return found


def _number(text: str) -> float:
    """A value of Prometheus: a number, NaN, +Inf or -Inf; NaN for any other text."""
    try:
        return float(text)
    except ValueError:
        return math.nan
