"""The tables of README.md name existing tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
README = (HERE / "README.md").read_text()


def named() -> list[tuple[str, str, str]]:
    """Return (file, test, row) of each entry; in a section named after a file, the rows are those of the file's only
    test.
    """
    found = [(file, test, row or "") for file, test, row in re.findall(r"`(\w+\.py)::(\w+)(?:\[([^]]+)\])?`", README)]
    for section in re.split(r"^##+ ", README, flags=re.MULTILINE):
        file = re.match(r"`(test_\w+\.py)`\n", section)
        rows = re.findall(r"\| \[([^]]+)\] \|", section)
        found += [(file[1], "test_what_requeues_a_pod", row) for row in rows if file]
    return found


@pytest.mark.parametrize(("file", "test", "row"), [pytest.param(*each, id=" ".join(each)) for each in named()])
def test_each_test_that_the_table_names_exists(file: str, test: str, row: str) -> None:
    text = (HERE / file).read_text()
    assert f"def {test}(" in text
    assert f'id="{row}"' in text or not row


def test_no_row_of_the_requeueing_tables_is_missing_in_the_table() -> None:
    for kind in ("nodes", "pods", "volumes"):
        rows = re.findall(r'id="([^"]+)"', (HERE / f"test_requeueing_{kind}.py").read_text())
        listed = [row for file, _, row in named() if file == f"test_requeueing_{kind}.py"]
        assert sorted(rows) == sorted(listed)
