"""Functions of the standard and Kubernetes' own."""

from __future__ import annotations

import pytest

from stowplan.cel.values import CelError
from tests.cel.expressions import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("'a-b'.split('-').size() == 2 && 'AB'.lowerAscii() == 'ab'", True, id="strings"),
        pytest.param("'%d%%'.format([5]) == '5%'", True, id="a formatted string"),
        pytest.param("timestamp('2026-03-01T10:00:00Z').getHours() == 10", True, id="the hour of a timestamp"),
        pytest.param(r"'1.14.3'.matches('^1\\.(14|15)\\.\\d+$')", True, id="a pattern"),
        pytest.param(r"'1.14.3'.matches('^1\\.(15|16)\\.\\d+$')", False, id="another pattern"),
        pytest.param("'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'abc'.find('z') == ''", True, id="find"),
        pytest.param("[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && ['b', 'a'].isSorted() == false", True, id="lists"),
        pytest.param("[1, 2].indexOf(2) == 1 && 'abc'.indexOf('c') == 2", True, id="one name, two functions"),
        pytest.param("quantity('1500m').isGreaterThan(quantity('1'))", True, id="quantities"),
        pytest.param(
            "quantity('1').add(quantity('500m')).compareTo(quantity('1.5')) == 0", True, id="a sum of quantities"
        ),
        pytest.param(
            "[sign(quantity('-1')), sign(quantity('0')), sign(quantity('500m'))] == [-1, 0, 1]", True, id="signs"
        ),
        pytest.param("semver('1.30.0-rc.1').isLessThan(semver('1.30.0'))", True, id="a pre-release"),
        pytest.param("semver('1.2.3+a') == semver('1.2.3+b')", True, id="build metadata"),
        pytest.param("isSemver('v1.30.0')", False, id="no version"),
        pytest.param("cidr('10.1.0.0/16').containsIP(ip('10.1.2.3'))", True, id="an address in a network"),
        pytest.param("ip('::1').isLoopback() && ip('10.0.0.1').family() == 4", True, id="addresses"),
        pytest.param("string(ip('10.0.0.1')) == '10.0.0.1' && string(1) == '1'", True, id="conversions to strings"),
        pytest.param("url('https://a.b:80/c?d=e').getHostname() == 'a.b'", True, id="the host of a URL"),
        pytest.param("url('https://a.b:80/c?d=e').getQuery()['d'] == ['e']", True, id="the query of a URL"),
        pytest.param("!format.dns1123Label().validate('ok').hasValue()", True, id="a format"),
        pytest.param(
            "format.dns1123Label().validate('Not ok').value().size() == 1", True, id="a string that does not fit"
        ),
    ],
)
def test_functions(expression: str, expected: bool) -> None:
    assert evaluate(expression) is expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("object.metadata.name.matches('(')", id="a pattern"),
        pytest.param("quantity('much').isInteger()", id="a quantity"),
        pytest.param("semver('1.2') == semver('1.2')", id="a version"),
        pytest.param("ip('1.2.3.4.5').family() == 4", id="an address"),
        pytest.param("url('no url').getHost() == ''", id="a URL"),
    ],
)
def test_strings_that_cannot_be_parsed_are_errors(expression: str) -> None:
    with pytest.raises(CelError):
        evaluate(expression)
