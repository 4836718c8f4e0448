"""The picture of a report in the documents: `python -m tests.simulation.report.picture docs/simulation-report.png`.

Two days of a made-up cluster, packed; a few minutes of work. The picture is the part with causes and nodes.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from stowplan.apps.cli import main
from tests.simulation.report.chromium import Chromium, program

CLUSTER = """
apiVersion: simulation.stowplan.io/v1alpha1
kind: ClusterTemplate
nodes:
- {name: general, count: 160, capacity: {cpu: 32, memory: 128Gi}, labels: {pool: general}, zones: [a, b], price: 1.5}
- {name: gpu, count: 24, capacity: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 8}, labels: {pool: gpu}, price: 14}
"""
SCENARIO = """
apiVersion: simulation.stowplan.io/v1alpha1
kind: Scenario
templates:
- apiVersion: v1
  kind: Pod
  metadata: {name: web}
  spec:
    nodeSelector: {pool: general}
    containers: [{name: main, image: app, resources: {requests: {cpu: 2, memory: 6Gi}}}]
- apiVersion: v1
  kind: Pod
  metadata: {name: batch}
  spec:
    nodeSelector: {pool: general}
    containers: [{name: main, image: app, resources: {requests: {cpu: 7, memory: 24Gi}}}]
- apiVersion: v1
  kind: Pod
  metadata: {name: train}
  spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 16, memory: 64Gi, nvidia.com/gpu: 4}}}]}
phases:
- name: web
  from: 0s
  for: 2d
  arrivals: [{template: web, process: {poisson: 60s}, duration: {lognormal: {median: 2h, sigma: 1}}, namespace: shop}]
- name: monday
  from: 8h
  for: 10h
  arrivals:
  - {template: batch, process: {poisson: 17s}, duration: {lognormal: {median: 3h, sigma: 0.6}}, namespace: lab}
- name: tuesday
  from: 32h
  for: 10h
  arrivals:
  - {template: batch, process: {poisson: 21s}, duration: {lognormal: {median: 3h, sigma: 0.6}}, namespace: lab}
- name: training
  from: 4h
  for: 40h
  arrivals: [{template: train, process: {poisson: 6m}, duration: {lognormal: {median: 4h, sigma: 0.6}}, namespace: ml}]
"""
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}
"""
FROM, TO = "document.querySelector('#causes').previousElementSibling", "document.querySelector('#heat')"
MOVED = """(slider => {  // to a moment at which nodes differ
  slider.value = Math.round(slider.max * .44);
  slider.dispatchEvent(new Event('input'));
})(document.getElementById('moment'))"""
PLACE = f"[{FROM}.getBoundingClientRect().top + scrollY, {TO}.getBoundingClientRect().bottom + scrollY]"


def report(folder: Path) -> Path:
    """Write the report of the run."""
    for name, text in (("cluster.yaml", CLUSTER), ("scenario.yaml", SCENARIO), ("packed.yaml", PACKED)):
        (folder / name).write_text(text, encoding="utf-8")
    file = folder / "report.html"
    run = ["simulate", str(folder / "cluster.yaml"), str(folder / "scenario.yaml"), "--until", "2d"]
    said = CliRunner().invoke(main, [*run, "--config", str(folder / "packed.yaml"), "--report", str(file)])
    assert said.exit_code == 0, said.output
    print(said.stdout)
    return file


def picture(file: Path, folder: Path) -> bytes:
    """Return the part of the page with causes and nodes, in light colours, as a PNG."""
    path = program()
    assert path is not None, "no Chromium is there"
    with Chromium(path, folder) as browser:
        tab = browser.open(file.as_uri())
        tab.value(MOVED)
        top, bottom = tab.value(PLACE)
        clip = {"x": 0, "y": top + 8, "width": 1200, "height": bottom - top, "scale": 1}
        shot = tab.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        made = report(Path(name))
        Path(sys.argv[1]).write_bytes(picture(made, Path(name)))
        if len(sys.argv) > 2:
            Path(sys.argv[2]).write_bytes(made.read_bytes())
