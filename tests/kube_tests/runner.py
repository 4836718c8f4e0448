"""Runs the test program of a package, with Stowplan or with kube-scheduler's own code.

build/kube-tests/
    results.json               how each test ended
    PACKAGE.log                what the tests printed
    PACKAGE/TEST-NNN.log       what the scheduler printed, one file for each start; .yaml: the configuration it got
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import stowplan
from stowplan.framework.feature_gates import GATES
from tests.controlplane.build import programs
from tests.kube_tests import build, source
from tests.kube_tests.expectations import Expectations
from tests.kube_tests.outcomes import Collector, Outcome

# In the default plugins once their alpha gates are on; Stowplan does not have them.
ALPHA_PLUGINS = "TopologyPlacementGenerator,TopologyPlacement,PodGroupPodsCount"
STOWPLAN = f"{sys.executable} -m stowplan.apps.cli run"

Ended = Callable[[str, dict[str, Outcome]], None]  # a test ended; the outcomes so far


@dataclass(frozen=True)
class Request:
    """What to run. `only`, `skip`: regular expressions, as for `go test`; `gang`: Stowplan's name of GangScheduling."""

    package: str
    folder: Path
    commit: str = ""
    original: bool = False
    only: str = ""
    skip: str = ""
    scheduler: str = STOWPLAN
    gang: str = ""

    @property
    def label(self) -> str:
        return self.package.replace("/", "-") + ("-original" if self.original else "")

    @property
    def whole(self) -> bool:
        return not self.only and not self.skip


def run(request: Request, expected: Expectations, ended: Ended) -> dict[str, Outcome]:
    """Run the tests of a package. Return how each ended."""
    logs = request.folder / request.label
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    collector = Collector()
    with (request.folder / f"{request.label}.log").open("w", encoding="utf-8") as log:
        child = subprocess.Popen(
            command(request, expected), cwd=build.folder(request.package), env=environment(request, expected, logs),
            stdout=subprocess.PIPE, stderr=log, text=True, errors="replace",
        )  # fmt: skip
        assert child.stdout is not None
        try:
            for line in child.stdout:
                test, text = collector.take(line)
                log.write(text)
                if test:
                    log.flush()
                    ended(test, collector.outcomes())
        finally:
            child.terminate()
            child.wait()
    return collector.outcomes(request.commit)


def command(request: Request, expected: Expectations) -> list[str]:
    skipped = [request.skip, "" if request.original else expected.skipped(request.package)]
    skip = "|".join(filter(None, skipped))
    tests = [str(build.program(request.package)), "-test.v=test2json", "-test.timeout=120m"]
    tests += [f"-test.run={request.only}"] if request.only else []
    tests += [f"-test.skip={skip}"] if skip else []
    return ["go", "tool", "test2json", "-t", *tests]


def environment(request: Request, expected: Expectations, logs: Path) -> dict[str, str]:
    found = os.environ | {"PATH": f"{etcd_folder()}:{os.environ['PATH']}", "EXTERNAL_SCHEDULER_LOGS": str(logs)}
    if request.original:
        return found
    strip = f"{expected.harmless_plugins.get(request.package, '')},{ALPHA_PLUGINS}"
    # The program must import the same code as we do, wherever it is started.
    code = str(Path(stowplan.__file__).parents[1])
    return found | {
        "PYTHONPATH": os.pathsep.join(filter(None, [code, os.environ.get("PYTHONPATH", "")])),
        "EXTERNAL_SCHEDULER": request.scheduler,
        "EXTERNAL_STRIP": strip,
        "EXTERNAL_GANG": request.gang,
        "EXTERNAL_GATES": ",".join(GATES),
    }


def etcd_folder() -> Path:
    """A folder with an etcd that does not wait for the disk: on a busy machine API servers give up while they start."""
    folder = source.cache() / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    wrapper = folder / "etcd"
    text = f'#!/bin/sh\nexec {programs()["etcd"]} --unsafe-no-fsync "$@"\n'
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.write_text(text)
        wrapper.chmod(0o755)
    return folder


def timed(started: float) -> float:
    return round(time.monotonic() - started, 1)
