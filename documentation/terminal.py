"""The picture of `stowplan explain` in the README: `python -m documentation.terminal docs/explain.svg`.

A cluster of four nodes and a pod that fits on none of them. What is drawn is what the command prints. It is the same
each time.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from stowplan.apps.cli import main

WIDTH = 100
CLUSTER = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: blue-0, labels: {pool: blue, disk: ssd}}
  spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}
  status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
- apiVersion: v1
  kind: Node
  metadata: {name: blue-1, labels: {pool: blue, disk: ssd}}
  status: {allocatable: {cpu: "2", memory: 8Gi, pods: "110"}}
- apiVersion: v1
  kind: Node
  metadata: {name: gpu-0, labels: {pool: gpu, disk: ssd}}
  spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}
  status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
- apiVersion: v1
  kind: Node
  metadata: {name: green-0, labels: {pool: green, disk: hdd}}
  status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
- apiVersion: v1
  kind: Pod
  metadata: {name: search-0, namespace: shop}
  spec:
    schedulerName: default-scheduler
    nodeSelector: {disk: ssd}
    containers: [{name: main, image: search, resources: {requests: {cpu: "4", memory: 8Gi}}}]
  status: {phase: Pending}
"""


def printed() -> str:
    """Return what the command prints on a terminal of this width."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "cluster.yaml"
        dump.write_text(CLUSTER, encoding="utf-8")
        said = CliRunner().invoke(
            main, ["explain", "search-0", "-n", "shop", "--from", str(dump)], env={"COLUMNS": str(WIDTH)}
        )
    assert said.exit_code == 1, said.output
    return said.stdout


def picture() -> str:
    """Return the terminal as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ stowplan explain search-0 -n shop", style="bold green"))
    console.print(Text(printed().rstrip()))
    drawn = console.export_svg(title="stowplan explain", theme=MONOKAI, unique_id="explain")
    return re.sub(r"\s*@font-face {.*?}", "", drawn, flags=re.DOTALL)  # no request to another server


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
