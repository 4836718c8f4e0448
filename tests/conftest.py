"""Hypothesis profiles: `ci` repeats itself exactly and is quick, `full` looks further (STOWPLAN_HYPOTHESIS=full)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=80, stateful_step_count=30, suppress_health_check=QUIET
)
settings.register_profile(
    "full", deadline=None, max_examples=2000, stateful_step_count=60, suppress_health_check=QUIET, print_blob=True
)
settings.load_profile(os.environ.get("STOWPLAN_HYPOTHESIS", "ci"))
