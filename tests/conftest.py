"""Hypothesis profiles, chosen by STOWPLAN_HYPOTHESIS.

ci      (the default) quick, and the same examples each time
full    many more examples, others each time
hasty   as ci, but reports the first failure as it was found: searching for a simpler one may take minutes
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

ci = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    stateful_step_count=30,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("ci", ci)
settings.register_profile("full", ci, derandomize=False, max_examples=600, stateful_step_count=50, print_blob=True)
settings.register_profile("hasty", ci, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("STOWPLAN_HYPOTHESIS", "ci"))
