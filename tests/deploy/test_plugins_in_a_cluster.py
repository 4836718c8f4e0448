"""The three ways to bring a plugin of one's own into a cluster, as docs/running.md describes them.

Each starts `stowplan run` as a pod would, up to the point where a cluster is needed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "plugins"
PAGE = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Plugins in a cluster\n")[2].partition("\n## ")[0]
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: stowplan
    plugins: {multiPoint: {enabled: [{name: "%s", weight: 10}]}}
"""
STARTED = "there is no kubeconfig"


def kustomization() -> Any:
    return yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))


def patches(kind: str) -> Any:
    (found,) = (each for each in kustomization()["patches"] if each["target"]["kind"] == kind)
    return yaml.safe_load(found["patch"])


def mounted_config_map(folder: Path, **data: str) -> Path:
    """Return a folder as the kubelet mounts a ConfigMap: each file is a link into the version that is current."""
    version = folder / "..2026_11_16"
    version.mkdir(parents=True)
    (folder / "..data").symlink_to(version.name)
    for name, text in data.items():
        file = name.replace("__", ".")
        (version / file).write_text(text, encoding="utf-8")
        (folder / file).symlink_to(f"..data/{file}")
    return folder


def started(*arguments: str, **environment: str) -> str:
    """Start the scheduler; return what it says when it finds no cluster, or why it did not get so far."""
    words = ["-P", "-m", "stowplan.apps.cli", "run", "--kubeconfig", "/no/such/kubeconfig", *arguments]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 2, done.stderr
    return STARTED if "/no/such/kubeconfig" in done.stderr else done.stderr


def test_a_mounted_folder(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "spot_last.py").write_text((FOLDER / "spot_last.py").read_text(encoding="utf-8"))
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG % "spot_last.py:SpotLast")
    assert started(f"--config={config}", f"--plugin-path={plugins}") == STARTED
    assert "no folder is named that code may come from; give --plugin-path" in started(f"--config={config}")


def test_a_config_map(tmp_path: Path) -> None:
    """The configuration and the code of deploy/plugins, mounted as the patches of the Deployment say."""
    added = {each["path"].removesuffix("/-").rpartition("/")[2]: each["value"] for each in patches("Deployment")}
    mount, volume = added["volumeMounts"], added["volumes"]
    (generated,) = kustomization()["configMapGenerator"]
    assert added["args"] == f"--plugin-path={mount['mountPath']}" and mount["readOnly"] is True
    assert volume == {"name": mount["name"], "configMap": {"name": generated["name"]}}
    code = {each.replace(".", "__"): (FOLDER / each).read_text(encoding="utf-8") for each in generated["files"]}
    plugins = mounted_config_map(tmp_path / "plugins", **code)
    config = mounted_config_map(tmp_path / "config", config__yaml=patches("ConfigMap")["data"]["config.yaml"])
    assert started(f"--config={config / 'config.yaml'}", f"--plugin-path={plugins}") == STARTED


def test_the_config_map_of_the_configuration_brings_no_code(tmp_path: Path) -> None:
    files = {"config__yaml": CONFIG % "evil.py:Evil", "evil__py": "raise SystemExit('the code ran')"}
    config = mounted_config_map(tmp_path / "config", **files)
    said = started(f"--config={config / 'config.yaml'}")
    assert "no folder is named that code may come from" in said and "the code ran" not in said


def test_the_page_says_who_runs_code() -> None:
    for text in (SECTION, (FOLDER / "kustomization.yaml").read_text(encoding="utf-8")):
        assert "can write this ConfigMap runs code in the scheduler" in text.replace("*", "")
    assert all(f"**{number}. " in SECTION for number in (1, 2, 3))


# -- a wheel


def wheel(folder: Path) -> Path:
    """Return a wheel with the plugin, and the entry point that the page shows: a wheel is a zip file with metadata."""
    shown = re.search(r'\[project\.entry-points\."(.+?)"\].*\n\s+(\w+) = "(.+)"', SECTION)
    assert shown is not None
    group, name, value = shown.groups()
    info, file = "spot_last-1.0.dist-info", folder / "spot_last-1.0-py3-none-any.whl"
    written = {
        "spot_last.py": (FOLDER / "spot_last.py").read_text(encoding="utf-8"),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: spot_last\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{group}]\n{name} = {value}\n",
    }
    record = "".join(f"{each},,\n" for each in (*written, f"{info}/RECORD"))
    with zipfile.ZipFile(file, "w") as archive:
        for each, text in {**written, f"{info}/RECORD": record}.items():
            archive.writestr(each, text)
    return file


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The folder that the build stage of a derived image copies: installed with the words of the page, offline."""
    shown = re.search(r"RUN (pip install .*) --target /out /(\S+\.whl)", SECTION)
    file = wheel(tmp_path)
    assert shown is not None and shown[2] == file.name
    command = [sys.executable, "-m", *shown[1].split(), "--no-index", "--quiet", "--target", str(tmp_path / "out")]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tmp_path / "out"


def test_a_wheel_in_a_derived_image(installed: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG % "SpotLast")
    path = os.pathsep.join((str(installed), os.environ.get("PYTHONPATH", "")))
    assert started(f"--config={config}", PYTHONPATH=path) == STARTED, "without --plugin-path"
    assert "SpotLast" in started(f"--config={config}"), "not installed, not found"
    config.write_text(CONFIG % "spot_last:SpotLast")
    assert started(f"--config={config}", PYTHONPATH=path) == STARTED, "by its module"
