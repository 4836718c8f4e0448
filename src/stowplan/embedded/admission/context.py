"""What admission may use apart from the object: other objects, the time, and random numbers."""

from __future__ import annotations

import random

import msgspec

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.store import DocumentStore


class AdmissionContext(msgspec.Struct, frozen=True):
    store: DocumentStore
    generator: random.Random
    options: RequestOptions

    @property
    def now(self) -> float:
        return self.options.now
