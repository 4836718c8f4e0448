"""Copies into the chart what lies elsewhere: Helm reads no files outside of a chart.

    python packaging/chart_files.py            copy what changed
    python packaging/chart_files.py --check    change nothing; fail if something did

deploy/crds and deploy/monitoring have the originals. What is gone there goes here, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
FILES = DEPLOY / "charts" / "stowplan" / "files"
SOURCES = (  # from, which files, to
    ("crds", "*.io.yaml", "crds/kosmos"),
    ("crds/kubenexus", "*.io.yaml", "crds/kubenexus"),
    ("crds/placement", "*.io.yaml", "crds/placement"),
    ("monitoring", "alerts.yaml", "monitoring"),
    ("monitoring/dashboards", "*.json", "monitoring/dashboards"),
)


def wanted(deploy: Path = DEPLOY, files: Path = FILES) -> dict[Path, bytes]:
    """What each file of the chart has to contain."""
    found = {}
    for source, pattern, target in SOURCES:
        for file in sorted((deploy / source).glob(pattern)):
            found[files / target / file.name] = file.read_bytes()
    return found


def differences(expected: dict[Path, bytes], files: Path = FILES) -> Iterator[Path]:
    there = {file for file in files.rglob("*") if file.is_file()}
    for file in sorted(there | expected.keys()):
        if file not in there or file not in expected or file.read_bytes() != expected[file]:
            yield file


def main(words: list[str]) -> int:
    if words not in ([], ["--check"]):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    expected = wanted()
    changed = list(differences(expected))
    for file in changed:
        name = file.relative_to(DEPLOY.parent)
        if words:
            sys.stderr.write(f"{name} is not what deploy/ has; `make chart` copies it\n")
        elif file in expected:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(expected[file])
            sys.stdout.write(f"copied {name}\n")
        else:
            file.unlink()
            sys.stdout.write(f"removed {name}\n")
    return 1 if words and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
