"""What `stowplan run` loads: an idle scheduler should be small. Each of these takes megabytes that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import stowplan.apps.cli, stowplan.apps.http_server, stowplan.apps.run.pages, stowplan.apps.run.service
stowplan.apps.run.tie_draw.TieDraw().integers(3)
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    said = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in said.stdout.split()} | set(said.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("aiohttp", id="the HTTP server of the embedded cluster, 10 MB"),
        pytest.param("numpy.random", id="generators of random numbers, 3 MB"),
        *("cryptography", "jsonschema", "cel_expr_python", "rich"),
        *("stowplan.embedded", "stowplan.placement", "stowplan.plugins.clusters", "stowplan.simulation"),
    ],
)
def test_it_is_not_loaded(loaded: set[str], module: str) -> None:
    assert "stowplan.engine.scheduler" in loaded and module not in loaded
