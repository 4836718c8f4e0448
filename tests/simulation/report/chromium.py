"""A real Chromium without a window, told what to do through a pipe (the DevTools protocol): no port, no library.

with Chromium(program, folder) as browser:
    tab = browser.open(file.as_uri(), width=1200)
    tab.value("document.title"), tab.problems, tab.requests
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--no-default-browser-check", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip
PATIENCE = 120.0  # seconds in which Chromium says something; else it hangs
DRAWN = """new Promise(done => {
  const look = () => document.documentElement.dataset.drawn ? done(true) : setTimeout(look, 20);
  look();
})"""


def program() -> str | None:
    """Return the path of a Chromium, or of a Chrome."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Chromium:
    def __init__(self, path: str, folder: Path) -> None:
        reads, writes = os.pipe(), os.pipe()
        # Both ends go to 3 and 4, where Chromium looks for them; until then they must be elsewhere.
        theirs = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (reads[0], writes[1])]
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium refuses to be root in a sandbox
        command = (
            f"import os, sys; os.dup2({theirs[0]}, 3); os.dup2({theirs[1]}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self._errors = (folder / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, path, *FLAGS, *root, f"--user-data-dir={folder}/profile",
             "about:blank"],
            pass_fds=theirs, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors,
            start_new_session=True, env={**os.environ, "HOME": str(folder)},
        )  # fmt: skip
        for each in (*theirs, reads[0], writes[1]):
            os.close(each)
        self._write, self._read = reads[1], writes[0]
        self._unread, self._number = b"", 0
        self._tabs: dict[str, BrowserTab] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._write)
        os.close(self._read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its own session, so these are its own children alone
        self._process.wait()
        self._errors.close()

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Return what Chromium answers."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            asked["sessionId"] = session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while (said := self._next()).get("id") != asked["id"]:
            self._happened(said)
        assert "error" not in said, (method, said["error"])
        found: dict[str, Any] = said["result"]
        return found

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            more = os.read(self._read, 1 << 20) if ready else b""
            assert more, f"Chromium says nothing; it ended with {self._process.poll()}"
            self._unread += more
        text, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def _happened(self, said: dict[str, Any]) -> None:
        tab = self._tabs.get(said.get("sessionId", ""))
        if tab is not None:
            tab.happened(said["method"], said["params"])

    def open(
        self, url: str, *, width: int = 1200, height: int = 900, scheme: str = "light", script: bool = True
    ) -> BrowserTab:
        """Open a page in a new tab. `script`: with JavaScript; the page is drawn then."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = BrowserTab(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )  # fmt: skip
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        if not script:
            tab.call("Emulation.setScriptExecutionDisabled", value=True)
        tab.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in tab.events:
            self._happened(self._next())
        if script:
            tab.value(DRAWN)
        return tab


class BrowserTab:
    """`problems`: errors and warnings of the console. `requests`: all addresses that were asked for."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.events: set[str] = set()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def happened(self, event: str, parameters: dict[str, Any]) -> None:
        """Take in what Chromium tells of the tab."""
        self.events.add(event)
        if event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"]["text"])
        elif event == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str(parameters["args"]))
        elif event == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page; of a promise, what it promises."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key where the focus is."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, *, whole: bool = True) -> bytes:
        """Return the page as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole, **_clip(self))["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(
            self.call("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.7)["data"]
        )

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


def _clip(tab: BrowserTab) -> dict[str, Any]:
    size = tab.call("Page.getLayoutMetrics")["cssContentSize"]
    return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
