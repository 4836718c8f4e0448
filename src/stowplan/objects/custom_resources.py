"""A custom resource that a plugin brings: where the API server serves it, and the type of its objects."""

from __future__ import annotations

import msgspec

from stowplan.objects.meta import Object

WRITES = ("status", "create", "patch", "delete")


class CustomResource(msgspec.Struct, frozen=True):
    """A custom resource that a plugin reads, and writes if it says so. A plugin lists it in `reads`.

        class TeamBudgetSpec(ApiValue, frozen=True):
            pods: int = 0

        class TeamBudget(Object, frozen=True):
            spec: TeamBudgetSpec = TeamBudgetSpec()

        class Budgets:
            reads = (CustomResource(TeamBudget, group="example.com", version="v1", plural="teambudgets"),)

    The scheduler watches the resource as soon as the server has its CRD. `cluster.get(TeamBudget, key)` and
    `cluster.every(TeamBudget)` return objects, and `Wake("TeamBudget", ("Add", "Update"))` requeues pods when one
    changes. An object that cannot be read is skipped with a warning; its last readable version stays until it is
    deleted. `stowplan config check --rbac` prints the rights that all this needs.

    object_type  the type of the objects; its name is the kind, unless `kind` says otherwise
    version      one version, or several: the first one that the server serves is used
    namespaced   False for a resource without namespaces
    writes       what the plugin's actions do with these objects: any of "status", "create", "patch", "delete"; other
                 writes are refused
    """

    object_type: type[Object]
    group: str
    version: str | tuple[str, ...]
    plural: str
    namespaced: bool = True
    kind: str = ""
    writes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the type: what `Wake` and actions call the kind."""
        return self.object_type.__name__

    @property
    def api_kind(self) -> str:
        return self.kind or self.name

    @property
    def versions(self) -> tuple[str, ...]:
        return (self.version,) if isinstance(self.version, str) else self.version
