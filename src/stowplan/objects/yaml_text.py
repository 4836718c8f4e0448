"""Values as YAML that every reader understands alike: to Kubernetes y is a boolean and 1e3 a number, to PyYAML not."""

from __future__ import annotations

from typing import Any

import yaml

from stowplan.objects.bounded_yaml import implied


class _Dumper(yaml.SafeDumper):
    """Quotes each text that a reader could take for something else, and writes what occurs twice two times."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", value, "" if isinstance(implied(value), str) else "'")


_Dumper.add_representer(str, _Dumper.text)


def dump(value: Any, *, sort_keys: bool = False) -> str:
    """Return the text of a value that JSON can hold."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=sort_keys, default_flow_style=False)
