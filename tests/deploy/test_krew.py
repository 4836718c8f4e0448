"""`kubectl stowplan` for krew: krew's own validator takes the manifest, krew installs the archive, kubectl finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from threading import Thread

import pytest

from tests.controlplane import build
from tests.deploy import tools
from tests.deploy.charts import ROOT

VERSION = metadata.version("stowplan")


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(each) for each in words],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def a_wheel(folder: Path) -> Path:
    """Any file of that name: what is in it is not looked at."""
    wheel = folder / f"stowplan-{VERSION}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    return wheel


def packed(wheel: Path, folder: Path, *more: str) -> tuple[Path, Path]:
    archive, manifest = run(sys.executable, "packaging/krew.py", wheel, folder, *more).split()
    return Path(archive), Path(manifest)


def test_the_same_wheel_gives_the_same_archive(tmp_path: Path) -> None:
    wheel = a_wheel(tmp_path)
    first, again = (packed(wheel, tmp_path / name) for name in ("first", "again"))
    assert first[0].read_bytes() == again[0].read_bytes()
    assert first[1].read_text() == again[1].read_text()
    assert f"/v{VERSION}/kubectl-stowplan-{VERSION}.tar.gz" in first[1].read_text()
    assert "@" not in first[1].read_text()


def test_another_file_is_refused(tmp_path: Path) -> None:
    words = [sys.executable, "packaging/krew.py", str(tmp_path / "other.whl"), str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "is no wheel of Stowplan" in done.stderr


@pytest.mark.full  # Go builds krew; pip builds and installs
def test_krew_installs_it_and_kubectl_runs_it(tmp_path: Path) -> None:
    """Validated with an installation for each platform, from a server on the loopback, as krew's index does."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(build.programs(build.MAIN)["kubectl"])
    (folder / "kubectl-krew").symlink_to(tools.built(tools.KREW))
    own = tmp_path / "krew"
    environment = {"PATH": f"{own / 'bin'}:{folder}:{os.environ['PATH']}", "KREW_ROOT": str(own), "KUBERC": "off"}
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("stowplan-*.whl")
    with served(tmp_path / "out") as url:
        archive, manifest = packed(wheel, tmp_path / "out", "--uri", f"{url}/kubectl-stowplan-{VERSION}.tar.gz")
        run(tools.built(tools.KREW_VALIDATOR), "-manifest", manifest, **environment)
        run("kubectl-krew", "install", f"--manifest={manifest}", f"--archive={archive}", **environment)
    assert "stowplan" in run("kubectl", "plugin", "list", **environment)
    for _ in ("installs its libraries", "has them"):
        assert f"kubectl stowplan {VERSION}" in run("kubectl", "stowplan", "--version", **environment)
    assert "Usage: kubectl stowplan [OPTIONS] COMMAND" in run("kubectl", "stowplan", "--help", **environment)
    run("git", "init", "--quiet", own / "index" / "default")  # to remove plugins krew wants an index, be it empty
    run("kubectl-krew", "uninstall", "stowplan", **environment)
    assert not list((own / "store").glob("stowplan/*/python*")), "nothing stays"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder's files over HTTP."""
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: pytest shows what matters."""
