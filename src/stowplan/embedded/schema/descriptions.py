"""What `kubectl explain` says about built-in kinds and their fields: our own sentences (`descriptions.yaml`)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from stowplan.objects import bounded_yaml

_ABOUT = "about"
_EVERYWHERE = {
    "apiVersion": "The API group and the version of this object.",
    "kind": "The kind of this object.",
    "metadata": "Its name, its labels, and what the server notes about it.",
    "spec": "What is wanted.",
    "status": "What is so far.",
}


@cache
def _written() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = bounded_yaml.load(files(__package__).joinpath("descriptions.yaml").read_bytes())
    return found


def about(type_name: str) -> str:
    """The sentence about a type; "" if there is none."""
    return _written().get(type_name, {}).get(_ABOUT, "")


def of_field(type_name: str, name: str, field_type: str) -> str:
    """The sentence about a field: its own, one for all fields of this name, or that of its type.

    kubectl shows the sentence of the type, too, but only if it is asked about this very field.
    """
    own = _written().get(type_name, {}).get(name) or _EVERYWHERE.get(name)
    return own or about(field_type.removeprefix("[]").removeprefix("{}"))
