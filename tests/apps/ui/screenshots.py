"""`make screenshots`: each page, light and dark, 1280 and 390 pixels wide, as PNG in build/screenshots.

    python -m tests.apps.ui.screenshots [PAGE…]

With `--readme` two of them are written to docs/, for the README.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.apps.ui import busy_cluster
from tests.apps.ui.pages_process import PAGES, served
from tests.simulation.report import chromium
from tests.simulation.report.chromium import BrowserTab, Chromium

OUT = Path("build/screenshots")
FOR_README = {"overview": "ui-overview.png", "pending": "ui-pending.png"}
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")


def simulated(folder: Path) -> Path:
    """Simulate a small cluster twice, with two configurations; return the folder of both."""
    cluster, trace, packed = folder / "cluster.yaml", folder / "trace.csv", folder / "packed.yaml"
    node = "apiVersion: v1\nkind: Node\nmetadata: {{name: node-{at}}}\n"
    status = (
        "status: {{allocatable: {{cpu: '16', memory: 64Gi, pods: '110'}}, capacity: {{cpu: '16', memory: 64Gi}}}}\n"
    )
    cluster.write_text("---\n".join((node + status).format(at=at) for at in range(24)), encoding="utf-8")
    rows = [f"{at * 6}m,{2 + at % 5}h,{1 + at % 4},{3 + at % 7}" for at in range(160)]
    trace.write_text("\n".join(["arrival,duration,cpu,count", *rows]) + "\n", encoding="utf-8")
    packed.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n"
        "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated, resources: "
        "[{name: cpu, weight: 1}]}}\n",
        encoding="utf-8",
    )
    for name, more in (("default", []), ("packed", ["--config", str(packed)])):
        out = folder / "runs" / name
        command = [sys.executable, "-m", "stowplan.apps.cli", "simulate", str(cluster), str(trace), "--out", str(out)]
        subprocess.run([*command, *more], check=True, capture_output=True)
    return folder / "runs"


def _first_screen(tab: BrowserTab) -> bytes:
    """Return what is seen without scrolling."""
    clip = {"x": 0, "y": 0, "width": 1280, "height": 900, "scale": 1}
    return base64.b64decode(tab.call("Page.captureScreenshot", clip=clip)["data"])


def main(wanted: list[str]) -> int:
    path = chromium.program()
    if path is None:
        print("no Chromium and no Chrome is there: `make browser` installs one", file=sys.stderr)
        return 1
    readme, names = "--readme" in wanted, [each for each in wanted if not each.startswith("--")] or list(PAGES)
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        dump, runs = busy_cluster.write(folder / "dump.json", nodes=240, pods=1500), simulated(folder)
        config = busy_cluster.write_configuration(folder / "config.yaml")
        with (
            served("--from", dump, "--simulation", runs, "--config", config) as pages,
            Chromium(path, folder) as browser,
        ):
            for name in names:
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        tab = pages.open(browser, PAGES[name], width=width, height=900, scheme=scheme)
                        picture = tab.picture()
                        (OUT / f"{name}-{width}-{scheme}.png").write_bytes(picture)
                        if readme and name in FOR_README and (width, scheme) == (1280, "light"):
                            (Path("docs") / FOR_README[name]).write_bytes(_first_screen(tab))
                        tab.close()
                print(f"{name}: {len(WIDTHS) * len(SCHEMES)} pictures in {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
