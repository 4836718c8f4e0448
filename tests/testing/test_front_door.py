"""What `stowplan.testing` offers: its example works, and every name has a docstring."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import pytest

from stowplan import testing
from stowplan.columns.nodes.views import Nodes
from stowplan.objects.pods import Pod
from stowplan.testing.world import World


class MyPlugin:
    """Prefers nodes with a solid-state disk."""

    def score(self, pod: Pod, nodes: Nodes) -> Any:
        return 100 * (nodes.label("disk") == "ssd")


def test_the_example_of_the_docstring_works() -> None:
    _, _, rest = (testing.__doc__ or "").partition("\n\n")
    lines = [line for line in rest.splitlines() if line.startswith("    ") or not line]
    names: dict[str, Any] = {"MyPlugin": MyPlugin}
    exec(textwrap.dedent("\n".join(lines)), names)
    tests = [found for name, found in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_all_is_in_order() -> None:
    assert testing.__all__ == sorted(testing.__all__)
    for name in testing.__all__:
        found = inspect.getdoc(getattr(testing, name)) or ""
        assert found, f"{name} has no docstring"
        assert any(each in found for each in (f"{name}(", f"{name}.")), f"the docstring of {name} has no example"


def public(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


@pytest.mark.parametrize("name", public(World))
def test_each_method_of_world_says_what_it_does(name: str) -> None:
    found = inspect.getattr_static(World, name)
    assert inspect.getdoc(found)


def test_pods_and_nodes_have_annotations() -> None:
    assert testing.a_pod(annotations={"example.com/urgent": "yes"}).annotations == {"example.com/urgent": "yes"}
    assert testing.a_node(annotations={"rack": "7"}).annotations == {"rack": "7"}


def test_a_name_of_a_file_is_no_configuration() -> None:
    with pytest.raises(TypeError, match=r"a file is a Path; write a_profile\(Path\('config.yaml'\)\)"):
        testing.a_profile("config.yaml")
