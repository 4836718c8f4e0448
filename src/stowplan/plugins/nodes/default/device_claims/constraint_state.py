"""What a constraint remembers while the search adds devices to a claim and removes them."""

from __future__ import annotations

from stowplan.plugins.nodes.default.device_claims.questions import Attribute, OneConstraint, OneRequest


class ConstraintState:
    """A constraint with the devices of a claim so far.

    kube-scheduler remembers the first value for matchAttribute, and one value per request for distinctAttribute: the
    latest one, which is forgotten when that device is removed.
    """

    __slots__ = ("constraint", "number", "values")

    def __init__(self, constraint: OneConstraint) -> None:
        self.constraint, self.number = constraint, 0
        self.values: dict[str, Attribute] = {}

    def add(self, request: OneRequest, value: Attribute | None) -> bool:
        if not self.constraint.covers(request):
            return True
        if value is None:
            return False
        if self.constraint.distinct:
            if value in self.values.values():
                return False
            self.values[request.base_name] = value
        elif self.number and self.values[""] != value:
            return False
        else:
            self.values[""] = value
        self.number += 1
        return True

    def remove(self, request: OneRequest) -> None:
        if not self.constraint.covers(request):
            return
        self.number -= 1
        if self.constraint.distinct:
            self.values.pop(request.base_name, None)
