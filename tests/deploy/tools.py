"""Programs that judge what we ship: helm, linters of manifests and workflows, krew, crane.

Each comes from its Go module, at one version.

    python -m tests.deploy.tools helm       builds it, and links it as .venv/bin/helm

They lie beside the programs of a control plane and are built in the same way (tests/controlplane/build.py). Go compares
every module with the public checksum database; the module of the program itself is also compared with the checksum
written here, so that another registry cannot give us another program.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.build import Module


@dataclass(frozen=True)
class Tool:
    """A program, its module, and the checksum of that module as go.sum has it."""

    program: str
    module: Module
    checksum: str

    @property
    def path(self) -> Path:
        return self.module.folder / self.program


_HELM = ("helm.sh/helm/v4/internal/version.version=v4.3.1",)
HELM = Tool(
    "helm",
    Module("helm", "helm.sh/helm/v4", "4.3.1", "cmd/helm", _HELM),
    "h1:UndCoLe9UPmNoL7IvWzaUXveL7T5t/ijoorEmgJdI9g=",
)
# kube-linter's module (golang.stackrox.io/kube-linter) is not in every registry; kube-score asks the same questions.
LINTER = Tool(
    "kube-score",
    Module("kube-score", "github.com/zegl/kube-score", "1.20.0", "cmd/kube-score"),
    "h1:J1VqK86SunV4Gg8emPTmwUVxe0rmXnAs5K9ZUbGMKR8=",
)
KREW = Tool(
    "krew",
    Module("krew", "sigs.k8s.io/krew", "0.5.0", "cmd/{program}"),
    "h1:60yffZy8Mkif5ty13uLxxr5wzu8eY860AkeyaFyp4PY=",
)
OPERATOR = (
    Module("prometheus-operator", "github.com/prometheus-operator/prometheus-operator", "0.85.0"),
    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
)
ACTIONLINT = Tool(
    "actionlint",
    Module("actionlint", "github.com/rhysd/actionlint", "1.7.12", "cmd/actionlint"),
    "h1:vQ4GeJN86C0QH+gTUQcs8McmK62OLT3kmakPMtEWYnY=",
)
CRANE = Tool(
    "crane",
    Module("crane", "github.com/google/go-containerregistry", "0.22.1", "cmd/crane"),
    "h1:RZuuSYhTvlDvtsK+NkutoCZ//C0X2ebLK8X8l3ULs84=",
)
KREW_VALIDATOR = Tool("validate-krew-manifest", KREW.module, KREW.checksum)


@cache
def built(tool: Tool) -> Path:
    """The program, built if need be. Without Go, and without an earlier build, the test is skipped."""
    if tool.module.is_built(tool.program):
        return tool.path
    if shutil.which("go") is None:
        pytest.skip(f"no Go to build {tool.program} with")
    check_module(tool.module, tool.checksum)
    build.build({tool.program: tool.module}, build.to_stderr)
    return tool.path


def check_module(module: Module, checksum: str) -> Path:
    """The folder of a module's sources; an error if the module is not the one that we know."""
    command = ["go", "mod", "download", "-json", f"{module.path}@v{module.version}"]
    # The checksum database is asked even where the settings of this machine's Go say otherwise.
    environment = os.environ | {"GOFLAGS": "-mod=mod", "GONOSUMDB": "", "GONOSUMCHECK": "", "GOWORK": "off"}
    done = subprocess.run(
        command, cwd=tempfile.gettempdir(), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["Sum"] == checksum, f"{command[-1]} has the checksum {found['Sum']}, not {checksum}"
    return Path(found["Dir"])


@cache
def operator_definitions() -> list[Path]:
    """The definitions of ServiceMonitor and PrometheusRule, as Prometheus Operator has them."""
    if shutil.which("go") is None:
        pytest.skip("no Go to fetch the definitions of Prometheus Operator with")
    folder = check_module(*OPERATOR) / "example" / "prometheus-operator-crd"
    return [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in ("servicemonitors", "prometheusrules")]


def run(tool: Tool, words: Sequence[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    command = [built(tool), *words]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def main(words: Sequence[str]) -> int:
    tools = {tool.program: tool for tool in (HELM, LINTER, KREW, KREW_VALIDATOR, ACTIONLINT, CRANE)}
    if len(words) != 1 or words[0] not in tools:
        sys.stderr.write(f"usage: python -m tests.deploy.tools {'|'.join(tools)}\n")
        return 2
    tool = tools[words[0]]
    if shutil.which("go") is None and not tool.module.is_built(tool.program):
        sys.stderr.write(f"{tool.program} is built from its Go module, and there is no Go\n")
        return 1
    path, link = built(tool), Path(sys.prefix) / "bin" / tool.program
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    sys.stdout.write(f"{link}: {tool.module.path} {tool.module.version}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
