"""helm with a real control plane: releases of the chart, and the chart as it was before."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.plane import ControlPlane
from tests.deploy import tools
from tests.deploy.charts import CHART, RELEASE, ROOT

NAMESPACE = "kube-system"


def helm(plane: ControlPlane, *words: str | Path, values: Mapping[str, Any] | None = None) -> str:
    """What helm prints, as the administrator; its own files are the plane's."""
    environment = {"KUBECONFIG": str(plane.kubeconfig())}
    environment |= {
        f"HELM_{name}_HOME": str(plane.folder / f"helm-{name.lower()}") for name in ("CACHE", "CONFIG", "DATA")
    }
    given: list[str | Path] = []
    if values is not None:
        file = plane.folder / "values.json"
        file.write_text(json.dumps(values))
        given = ["--values", file]
    done = tools.run(tools.HELM, [*words, *given, "--namespace", NAMESPACE], **environment)
    assert done.returncode == 0, f"helm {' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def history(plane: ControlPlane) -> list[tuple[int, str]]:
    """Number and status of each revision."""
    found = json.loads(helm(plane, "history", RELEASE, "--output", "json"))
    return [(each["revision"], each["status"]) for each in found]


def previous_chart(folder: Path) -> Path:
    """The chart as the last commit but one of it has it, or a copy with an older version where there is none."""
    place = CHART.relative_to(ROOT)
    commits = _git("log", "-2", "--format=%H", "--", str(place)).decode().split()
    chart = folder / place
    if len(commits) == 2:
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commits[1], str(place)))) as archive:
            archive.extractall(folder, filter="data")
    else:
        shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    about["version"] = "0.0.9"  # so that pods and objects tell the two apart
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    return chart


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""
