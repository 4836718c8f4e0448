"""The command line: one scenario a line on standard output, for the recorder to read."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from tests.oracle.draw.categories import CATEGORIES
from tests.oracle.draw.scenario import Draw, Obj, Scenario


def main() -> None:
    options = read_options()
    for category in options.category or [c for c in CATEGORIES if c != "large"]:
        for line in scenarios(category, options.count, options.seed):
            sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")


def read_options() -> argparse.Namespace:
    about = "Draw random scheduling scenarios in the form of the golden records."
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.draw", description=about)
    parser.add_argument("--category", choices=sorted(CATEGORIES), action="append", help="default: all but large")
    parser.add_argument("--count", type=int, default=100, help="scenarios of each category")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def scenarios(category: str, count: int, seed: int) -> Iterator[Obj]:
    """Each scenario has a source of its own, so the first ten of a hundred are the same ten when ten are asked for."""
    for i in range(count):
        draw = Draw(f"{seed}/{category}/{i}")
        scenario = Scenario(f"gen{seed}-{category}-{i:04d}", category, draw.getrandbits(50), draw)
        CATEGORIES[category](scenario)
        yield scenario.line()


if __name__ == "__main__":
    main()
