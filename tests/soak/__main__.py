"""`python -m tests.soak`: a storm on a real control plane; the table goes to standard output, and with --write into
docs/conformance.md.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import click

from tests import generated_section
from tests.soak.storm import soak

PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--rate", type=float, default=66.0, help="pods a second (default: 66, as faults make pauses)")
    parser.add_argument("--seed", type=int, default=1, help="of the workload (default: 1)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/conformance.md")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that folders are removed then, too
    found = soak(asked.minutes, asked.rate, asked.seed, lambda line: click.echo(line, err=True))
    click.echo(found.table())
    for each in found.verdicts():
        click.echo(f"wrong: {each}", err=True)
    if asked.write:
        generated_section.replace(PAGE, "soak", found.table())
    return 1 if found.verdicts() else 0


if __name__ == "__main__":
    sys.exit(main())
