"""A browser for tests of pages: Chromium of the distribution, driven by Playwright.

While it is open, Playwright's event loop runs in this thread, so a module that asks for it cannot use `asyncio.run`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.simulation.report import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium.program()
    if path is None:
        problem = "no Chromium and no Chrome is there: `make browser` installs one"
        (pytest.fail if os.environ.get("STOWPLAN_BROWSER") == "required" else pytest.skip)(problem)
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    arguments = ["--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", *root]
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            yield found
        finally:
            found.close()
