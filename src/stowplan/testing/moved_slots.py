"""Held slots that pods took to other nodes, which no object reports yet: they are copied to a state that is rebuilt."""

from __future__ import annotations

from stowplan.columns.state import ClusterState


def carry_moves(state: ClusterState, rebuilt: ClusterState) -> None:
    for key, book in state.stand_ins._books.items():
        for slot, uid in book.moved.items():
            other = rebuilt.stand_ins.at(key)
            if other is not None and book.taken_by(slot) == uid:
                other.moved[slot] = uid
                rebuilt.stand_ins._settle_all(key)
