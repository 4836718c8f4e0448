"""A page in the browser, and what happened there: errors of its console, and where its requests went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, Request

from tests.apps.ui.pages_process import ServedPages

DRAWN, LIVE = "html[data-drawn=yes]", "html[data-live=yes]"
OVERFLOWING = """() => {
  const wide = document.documentElement.clientWidth, found = [];
  for (const each of document.querySelectorAll('body *')) {
    if (each.closest('.wide, pre, .hidden, svg, [hidden], .skip')) continue;
    const box = each.getBoundingClientRect();
    if (box.width && (box.right > wide + 1 || box.left < -1)) found.push(`${each.tagName} ${each.className}`);
  }
  const whole = document.documentElement.scrollWidth;
  if (whole > wide + 1) found.push(`the page is ${whole} wide`);
  return found;
}"""


class WatchedPage:
    """`problems`: errors and warnings of the console, exceptions. `requests`: all addresses that were asked for."""

    def __init__(self, page: Page, pages: ServedPages) -> None:
        self.page, self.pages = page, pages
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda said: self._note(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("request", self._asked)

    def _note(self, text: str) -> None:
        self.problems.append(text)

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def go(self, path: str, *, live: bool = False) -> Page:
        """Open a page, with the token in the address the first time."""
        mark = "&" if "?" in path else "?"
        self.page.goto(f"{self.pages.root}{path}{mark}token={self.pages.token}", wait_until="load")
        self.page.locator(DRAWN).wait_for(state="attached")
        if live:
            self.page.locator(LIVE).wait_for(state="attached")
        return self.page

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def check(self) -> None:
        """Fail if anything went wrong, or if a request left for somewhere else."""
        assert self.problems == []
        assert [each for each in self.requests if not each.startswith((self.pages.root, "data:"))] == []

    def overflow(self) -> list[str]:
        found: list[str] = self.page.evaluate(OVERFLOWING)
        return found


@contextmanager
def opened(browser: Browser, pages: ServedPages, **given: Any) -> Iterator[WatchedPage]:
    """Open an empty page; at the end nothing may have gone wrong."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **given})
    try:
        found = WatchedPage(context.new_page(), pages)
        yield found
        found.check()
    finally:
        context.close()
