"""The image, built once for the tests of this folder, and its files unpacked for this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deploy.image import build
from deploy.image.selection import ARCHITECTURES

from tests.image import runtime


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> build.Image:
    """The image for all architectures."""
    try:
        build.machine()
    except build.BuildError as error:
        pytest.skip(str(error))
    return build.image(tmp_path_factory.mktemp("image"), ARCHITECTURES, [], print)


@pytest.fixture(scope="session")
def bundle(image: build.Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[runtime.Bundle]:
    if reason := runtime.why_not():
        pytest.skip(reason)
    with runtime.bundle(image.folder, tmp_path_factory.mktemp("bundle") / "image") as found:
        yield found
