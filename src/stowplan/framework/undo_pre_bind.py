"""Taking back what pre-binding wrote, if the pod does not get its node after all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.actions import AnyAction
from stowplan.objects.pods import Pod


@runtime_checkable
class UndoPreBindPlugin(Protocol):
    """A pre-bind plugin that takes back what its actions wrote if the pod does not get the node after all."""

    def undo_pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterable[AnyAction]:
        """Return actions that undo those of `pre_bind`; their results are not awaited. `unreserve` comes after it."""
