"""Another program reads the image: crane pushes it to a registry on loopback, and finds nothing wrong with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy.image import build
from deploy.image.selection import ARCHITECTURES

from tests.controlplane.flags import free_port
from tests.controlplane.process import until
from tests.deploy import tools

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def crane() -> Path:
    return tools.built(tools.CRANE)


def answers(crane: Path, address: str) -> bool:
    return subprocess.run([crane, "catalog", address], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def pushed(crane: Path, image: build.Image) -> Iterator[str]:
    """Push the image with the words of the workflow; the registry keeps it in memory."""
    address = f"127.0.0.1:{free_port()}"
    with subprocess.Popen([crane, "registry", "serve", "--address", address], stderr=subprocess.DEVNULL) as registry:
        try:
            until("the registry answers", lambda: answers(crane, address))
            run(crane, "push", str(image.folder), f"{address}/stowplan:1")
            yield f"{address}/stowplan:1"
        finally:
            registry.terminate()


def run(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_digest_is_that_of_the_build(crane: Path, pushed: str, image: build.Image) -> None:
    assert run(crane, "digest", pushed).strip() == image.digest


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_and_configuration_are_valid(crane: Path, pushed: str, architecture: str) -> None:
    """Sizes, digests and the digests of the layers' contents are compared."""
    manifest = run(crane, "digest", "--platform", f"linux/{architecture}", pushed).strip()
    name = f"{pushed.rpartition(':')[0]}@{manifest}"
    run(crane, "validate", "--remote", name)
    assert json.loads(run(crane, "config", name))["architecture"] == architecture
