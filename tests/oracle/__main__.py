"""Draw fresh scenarios, let the real kube-scheduler's code decide them, and compare our answers.

    python -m tests.oracle [--count N] [--seed S] [--category C ...] [--build-only]

Exit code 0 if all agree, 1 if not; the seed is printed, so that a difference can be drawn again. Where there is no Go
to build the recorder with, it says so and ends with 0: this check is then skipped, and the output says that.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.oracle.draw.categories.devices import DEVICES

HERE = Path(__file__).parent
CATEGORIES = (
    "everything-mixed", "image-locality", "inter-pod-affinity", "misc", "node-affinity", "node-name-ports",
    "preemption", "resources", "scoring-strategies", "taints", "topology-spread", "volumes",
    *DEVICES,
)  # fmt: skip


def main() -> int:
    options = read_options()
    recorder = build()
    if recorder is None:
        sys.stderr.write("SKIPPED: no Go on this machine, so the recorder cannot be built; nothing was compared\n")
        return 0
    if options.build_only:
        return 0
    sys.stdout.write(f"seed {options.seed}, {options.count} scenarios in each of {len(options.category)} categories\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        files = [record(recorder, category, options, Path(folder)) for category in options.category]
        return subprocess.run([sys.executable, "-m", "stowplan.apps.cli", "parity", *files], check=False).returncode


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=150, help="scenarios per category (default 150)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="what they are drawn from (default: the time)"
    )
    parser.add_argument("--category", nargs="+", choices=CATEGORIES, default=list(CATEGORIES))
    parser.add_argument("--build-only", action="store_true", help="build the recorder and stop")
    return parser.parse_args()


def build() -> Path | None:
    """The recorder's path, built if need be; None without Go."""
    ready = os.environ.get("STOWPLAN_RECORDER")
    if ready:
        return Path(ready)
    if shutil.which("go") is None:
        return None
    sys.stderr.write("building the recorder (minutes the first time, seconds later)\n")
    built = subprocess.run(["sh", str(HERE / "build.sh")], check=True, stdout=subprocess.PIPE, text=True)
    return Path(built.stdout.strip().splitlines()[-1])


def record(recorder: Path, category: str, options: argparse.Namespace, folder: Path) -> str:
    """One category's scenarios with what the real scheduler decided; those that end in its errors are left out."""
    file, left_out = folder / f"{category}.jsonl", folder / f"{category}.dropped"
    draw = [sys.executable, "-m", "tests.oracle.draw", "--category", category]
    draw += ["--count", str(options.count), "--seed", str(options.seed)]
    drawn = subprocess.run(draw, check=True, stdout=subprocess.PIPE)
    with file.open("wb") as out, left_out.open("wb") as dropped:
        subprocess.run([recorder, "-admit", "-drop"], input=drawn.stdout, stdout=out, stderr=dropped, check=True)
    reasons = left_out.read_text().splitlines()
    if reasons:
        sys.stdout.write(f"{category}: {len(reasons)} without an answer; the first: {reasons[0][:200]}\n")
    return str(file)


if __name__ == "__main__":
    sys.exit(main())
