"""Another scheduler name: a profile that is served, and that finds a node for the pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod

SCHEDULER_NAME = "scheduler-name"


def proposals(pod: Pod, profiles: Mapping[str, Profile]) -> Iterator[Edits]:
    for name in profiles:
        if name != pod.scheduler_name:
            text = f"change schedulerName from {pod.scheduler_name} to {name}"
            operation = Operation("replace", "/spec/schedulerName", name)
            yield (Edit(SCHEDULER_NAME, text, (PatchObject("Pod", pod.key, (operation,)),)),)
