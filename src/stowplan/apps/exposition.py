"""Metrics as text, in the format that the client asks for."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics


def exposition(registry: CollectorRegistry, accept: str = "") -> tuple[bytes, str]:
    """Return the metrics and their content type: OpenMetrics if the Accept header names it, else Prometheus' format."""
    if "application/openmetrics-text" in accept:
        text = openmetrics(registry)  # type: ignore[no-untyped-call]
        return bytes(text), "application/openmetrics-text; version=1.0.0; charset=utf-8"
    return bytes(generate_latest(registry)), "text/plain; version=0.0.4; charset=utf-8"
