"""What admission may know besides the object itself: the rest of the cluster, the time, and chance."""

from __future__ import annotations

import random

import msgspec

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.store import DocumentStore


class AdmissionContext(msgspec.Struct, frozen=True):
    store: DocumentStore
    draw: random.Random
    asked: RequestOptions

    @property
    def now(self) -> float:
        return self.asked.now
