"""Held slots that pods took to other nodes, which no object reports yet: they are copied to a state that is rebuilt."""

from __future__ import annotations

from stowplan.columns.state import ClusterState


def carry_moves(state: ClusterState, rebuilt: ClusterState) -> None:
    for kind, room in state.held_rooms.items():
        for key, slots in room._holdings.items():
            for slot, uid in slots.moved.items():
                other = rebuilt.held_rooms[kind].get(key)
                if other is not None and slots.taken_by(slot) == uid:
                    other.moved[slot] = uid
                    rebuilt.held_rooms[kind]._assign_all(key)
