"""A file that was written or replaced has another version."""

from __future__ import annotations

from pathlib import Path

from stowplan.kube.file_versions import versions


def test_versions_differ_after_each_change(tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    seen = [versions([file])]
    file.write_text("a")
    seen.append(versions([file]))
    file.write_text("ab")
    seen.append(versions([file]))
    other.write_text("ab")
    other.replace(file)
    seen.append(versions([file]))
    assert seen[0] == [None] and versions([file]) == seen[-1]
    assert len({str(each) for each in seen}) == 4
