"""How full nodes are: what is requested of each resource, and what there is."""

from __future__ import annotations

import msgspec

from stowplan.columns.nodes.table import NodeTable

ALWAYS = ("cpu", "memory", "pods")  # further resources are told if the node has them


class NodeFill(msgspec.Struct, frozen=True):
    """Amounts by resource: thousandths of a core for cpu, whole units for the others."""

    requested: dict[str, int]
    allocatable: dict[str, int]
    unschedulable: bool = False

    def part(self, resource: str) -> float:
        """The part that is requested, 0 to 1; more if too much is."""
        whole = self.allocatable.get(resource, 0)
        return self.requested.get(resource, 0) / whole if whole else 0.0


def fills_of(table: NodeTable) -> dict[str, NodeFill]:
    """Return the fill of each node by name."""
    rows = table.live_rows().tolist()
    requested = {name: column.tolist() for name, column in table.requested.items()}
    allocatable = {name: column.tolist() for name, column in table.allocatable.items()}
    cordoned = table.unschedulable.tolist()
    found = {}
    for row in rows:
        names = [name for name in allocatable if name in ALWAYS or allocatable[name][row]]
        found[table.names[row] or ""] = NodeFill(
            {name: requested[name][row] for name in names}, {name: allocatable[name][row] for name in names},
            cordoned[row],
        )  # fmt: skip
    return found
