"""The image, started by a real runtime: as its own user, without rights, on a root that is read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from deploy.image import bom, build, bytecode, layout

from tests.image import parts, runtime

pytestmark = pytest.mark.full
VERSION = metadata.version("stowplan")
STATUS = "print(open('/proc/self/status').read())"
WRITE = "import sys; open(sys.argv[1], 'w')"
PLUGIN = Path(__file__).parents[2] / "deploy" / "plugins" / "spot_last.py"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: stowplan
    plugins: {score: {enabled: [{name: %s}]}}
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/bin/stowplan", "--version"], f"stowplan {VERSION}"),
        (["/bin/kube-scheduler", "--version"], f"kube-scheduler {VERSION}"),
        (["/bin/stowplan", "demo"], " is Running on "),
    ],
)
def test_it_starts(bundle: runtime.Bundle, words: list[str], expected: str) -> None:
    done = bundle.run(*words)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_without_a_command_it_is_the_scheduler(bundle: runtime.Bundle) -> None:
    done = bundle.run()
    assert done.returncode == 2
    assert done.stderr.startswith("stowplan: no cluster to connect to")


def test_it_has_no_rights(bundle: runtime.Bundle) -> None:
    status = dict(
        line.split(":\t", 1) for line in bundle.run("/usr/bin/python3", "-c", STATUS).stdout.split("\n") if line
    )
    assert status["Uid"].split() == status["Gid"].split() == ["65532"] * 4
    assert {status[each] for each in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("place", ["/x", "/usr/lib/stowplan/x", "/etc/stowplan/x"])
def test_nothing_is_writable(bundle: runtime.Bundle, place: str) -> None:
    assert "Read-only file system" in bundle.run("/usr/bin/python3", "-c", WRITE, place).stderr


def test_certificates_are_trusted(bundle: runtime.Bundle) -> None:
    code = "import ssl; print(len(ssl.create_default_context().get_ca_certs()))"
    assert int(bundle.run("/usr/bin/python3", "-c", code).stdout) > 100


# -- the ways that plugins come in (docs/running.md)


def started(bundle: runtime.Bundle, mounts: dict[str, Path], *more: str) -> str:
    """Start the scheduler up to the point where it needs a cluster; return what it says."""
    words = ["/bin/stowplan", "run", "--config=/etc/stowplan/config.yaml", "--kubeconfig=/no/cluster", *more]
    done = bundle.run(*words, mounts=mounts)
    assert done.returncode == 2
    return done.stderr


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG % "spot_last.py:SpotLast", encoding="utf-8")
    return folder


def test_a_plugin_in_a_mounted_folder(bundle: runtime.Bundle, settings: Path, tmp_path: Path) -> None:
    """A ConfigMap is mounted as a folder of links; both ways end here."""
    plugins = tmp_path / "plugins"
    (plugins / "..data").mkdir(parents=True)
    (plugins / "..data" / "spot_last.py").write_bytes(PLUGIN.read_bytes())
    (plugins / "spot_last.py").symlink_to("..data/spot_last.py")
    mounts = {"/etc/stowplan": settings, "/home/nonroot": plugins}
    assert "/no/cluster" in started(bundle, mounts, "--plugin-path=/home/nonroot")
    assert "give --plugin-path" in started(bundle, mounts)


@pytest.fixture(scope="module")
def with_a_wheel(
    image: build.Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[build.Image, runtime.Bundle]]:
    """An image that was built with `--plugin`."""
    folder = tmp_path_factory.mktemp("plugin")
    entry = "[stowplan.plugins]\nSpotLast = spot_last:SpotLast\n"
    files = {"spot_last.py": PLUGIN.read_text(encoding="utf-8"), "spot_last-1.0.dist-info/entry_points.txt": entry}
    wheel = folder / "spot_last-1.0-py3-none-any.whl"
    wheel.write_bytes(parts.wheel("spot_last", "1.0", files))
    built = build.image(folder / "out", [build.machine()], [wheel], list[str]().append)
    with runtime.bundle(built.folder, folder / "bundle") as found:
        yield built, found


def test_a_plugin_in_a_wheel(
    with_a_wheel: tuple[build.Image, runtime.Bundle], bundle: runtime.Bundle, settings: Path
) -> None:
    """It has a name, needs no flag, is compiled and is in the bill of materials; without it the name is unknown."""
    built, derived = with_a_wheel
    (settings / "config.yaml").write_text(CONFIG % "SpotLast", encoding="utf-8")
    mounts = {"/etc/stowplan": settings}
    assert "/no/cluster" in started(derived, mounts)
    assert "SpotLast" in started(bundle, mounts) and "/no/cluster" not in started(bundle, mounts)
    tree = layout.files(built.folder, build.machine())
    assert bytecode.place("usr/lib/stowplan/spot_last.py") in tree.entries
    assert "pkg:pypi/spot-last@1.0" in (tree.read(bom.PLACE) or b"").decode()


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("x.tar.gz", {}, "expected a file whose name ends in .whl"),
        (
            "x-1-py3-none-any.whl",
            {"numpy/__init__.py": ""},
            "numpy/__init__.py: is in a plugin's wheel, and in the image already",
        ),
        ("x-1-py3-none-any.whl", {"x.so": "\x7fELF\x02\x01" + "\0" * 70}, "x.so: is for machine 0"),
    ],
)
def test_a_wheel_that_does_not_fit(name: str, files: dict[str, str], said: str, tmp_path: Path) -> None:
    wheel = tmp_path / name
    wheel.write_bytes(parts.wheel("x", "1", files))
    with pytest.raises(build.BuildError, match=re.escape(said)):
        build.image(tmp_path / "out", [build.machine()], [wheel], list[str]().append)
