"""What expressions see of a device, and how they fail."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects.quantity import custom_value
from stowplan.objects.resource_slices import Device
from stowplan.plugins.nodes.default.device_claims.device_expressions import DeviceExpression, DeviceExpressions

DRIVER = "gpu.example.com"
DEVICE: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "a100"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "driverVersion": {"version": "2.3.1"},
        "vendor.example.com/family": {"string": "ampere"},
    },
    "capacity": {"memory": {"value": "40Gi"}},
}


def says(expression: str, **fields: Any) -> bool | str:
    device = msgspec.convert({**DEVICE, **fields}, Device, dec_hook=custom_value)
    return DeviceExpression(expression).matches(DRIVER, device, b"alike")


def own(rest: str) -> str:
    return f'device.attributes["{DRIVER}"].{rest}'


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        own('model == "a100"'),
        own("index > 2"),
        own("ecc"),
        own('driverVersion.isGreaterThan(semver("2.0.0"))'),
        'device.attributes["vendor.example.com"].family == "ampere"',
        '!has(device.attributes["nobody.example.com"].model)',
        f'"model" in device.attributes["{DRIVER}"]',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("30Gi")) > 0',
        "!device.allowMultipleAllocations",
        f'cel.bind(own, device.attributes["{DRIVER}"], own.ecc && own.index == 3)',
        f'sets.contains(["a100", "h100"], [device.attributes["{DRIVER}"].model])',
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct().size() == 1",
        "[1, 2, 3].slice(0, 2).last().value() == 2 && lists.range(3).reverse() == [2, 1, 0]",
    ],
)
def test_an_expression_is_true(expression: str) -> None:
    assert says(expression) is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param(own("missing == 1"), "no such key: missing", id="a missing attribute"),
        pytest.param(own("driverVersion > 1"), "no such overload: _>_", id="a version has no order of its own"),
        pytest.param(own("model > 1"), "no such overload", id="a text and a number"),
        pytest.param(
            own("index"),
            "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool",
            id="a number",
        ),
        pytest.param(
            own("model"),
            "CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
            id="a text",
        ),
    ],
)
def test_an_expression_fails(expression: str, problem: str) -> None:
    assert says(expression) == f"CEL runtime error: {problem}"


def test_an_error_that_does_not_matter() -> None:
    assert says(f"{own('missing == 1')} || true") is True
    assert says(f"{own('missing == 1')} && false") is False


def test_an_expression_that_cannot_be_compiled_names_the_problem() -> None:
    found = says("device.driver ==")
    assert isinstance(found, str)
    assert found.startswith("CEL compile error: ")


def test_costs_are_bounded() -> None:
    found = says("lists.range(2000).all(x, lists.range(2000).all(y, x != y || x == y))")
    assert found == "CEL runtime error: operation cancelled: actual cost limit exceeded"


def test_expressions_are_compiled_once() -> None:
    compiled = DeviceExpressions()
    assert compiled("true") is compiled("true")


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param('device.driver == "d"', set(), id="none"),
        pytest.param('device.attributes["d"].model == "a"', {"model", "d/model"}, id="one"),
        pytest.param(
            'has(device.attributes["d"].uuid) || device.allowMultipleAllocations', {"uuid", "d/uuid"}, id="has"
        ),
        pytest.param('device.capacity["d"].memory.isInteger()', set(), id="a capacity"),
        pytest.param('"model" in device.attributes["d"]', None, id="whether a name is there"),
        pytest.param('cel.bind(own, device.attributes["d"], own.model == "a")', None, id="under another name"),
        pytest.param("[device].all(each, each.driver != '')", None, id="the whole device"),
    ],
)
def test_which_attributes_an_expression_reads(expression: str, names: set[str] | None) -> None:
    assert DeviceExpression(expression).attributes == names
