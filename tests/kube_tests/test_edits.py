"""Edits of sources, on tiny made-up ones; and that anchors are a line or two, not a piece of somebody's program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube_tests import edits, source
from tests.kube_tests.edits import Edit, EditError

SOURCE = "func Run() {\n\twork()\n}\n"


@pytest.mark.parametrize(
    ("where", "anchor", "result"),
    [
        pytest.param("after", "func Run() {\n", "func Run() {\n\tours()\n\twork()\n}\n", id="after"),
        pytest.param("before", "\twork()\n", "func Run() {\n\tours()\n\twork()\n}\n", id="before"),
        pytest.param("instead of", "\twork()\n", "func Run() {\n\tours()\n}\n", id="instead"),
    ],
)
def test_an_edit(where: str, anchor: str, result: str) -> None:
    assert Edit("run.go", where, anchor, "\tours()\n").apply(SOURCE) == result  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "times"), [pytest.param(SOURCE * 2, 2, id="twice"), pytest.param("nothing", 0, id="never")]
)
def test_an_anchor_must_be_there_once(text: str, times: int) -> None:
    with pytest.raises(EditError, match=rf"run\.go: found 'func Run\(\)' {times} times, expected it once"):
        Edit("run.go", "after", "func Run()", "").apply(text)


def test_several_edits_of_one_file() -> None:
    both = [Edit("a.go", "after", "one\n", "and\n"), Edit("a.go", "before", "two\n", "then\n")]
    assert edits.edited({"a.go": "one\ntwo\n", "b.go": "as it was\n"}, both) == {
        "a.go": "one\nand\nthen\ntwo\n",
        "b.go": "as it was\n",
    }


def test_tests_wait_until_the_program_has_read_the_cluster() -> None:
    before = "\tgo testCtx.Scheduler.Run(testCtx.SchedulerCtx)\n\tgo other.Run(ctx)\n"
    assert edits.waiting_starts(before) == "\ttestCtx.Scheduler.Start(testCtx.SchedulerCtx)\n\tgo other.Run(ctx)\n"


def test_modules_beside_it_come_at_the_version_that_was_published() -> None:
    go_mod = (
        "replace (\n\texample.com/api => ./staging/src/example.com/api\n\texample.com/x => example.com/y v1.0.0\n)\n"
    )
    assert source.published_replacements(go_mod, "v0.1.2") == (
        "replace (\n\texample.com/api => example.com/api v0.1.2\n\texample.com/x => example.com/y v1.0.0\n)\n"
    )


def test_the_copy_is_edited_from_the_module_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, copy, added = tmp_path / "module", tmp_path / "copy", tmp_path / "ours.go"
    for name in (*source.FOLDERS, "test/integration/util"):
        (module / name).mkdir(parents=True, exist_ok=True)
    (module / "go.sum").write_text("sums\n")
    (module / "pkg/run.go").write_text(SOURCE)
    (module / "test/integration/util/start.go").write_text("go testCtx.Scheduler.Run(ctx)\n")
    added.write_text("package ours\n")
    monkeypatch.setattr(edits, "EDITS", (Edit("pkg/run.go", "after", "func Run() {\n", "\tours()\n"),))
    monkeypatch.setattr(edits, "ADDED", {"pkg/ours.go": added})
    monkeypatch.setattr(edits, "STARTING", ("test/integration/util",))
    source.copy(module, copy)
    for _ in range(2):
        source.edit(module, copy)
        assert (copy / "pkg/run.go").read_text() == "func Run() {\n\tours()\n\twork()\n}\n"
        assert (copy / "pkg/ours.go").read_text() == "package ours\n"
        assert (copy / "test/integration/util/start.go").read_text() == "testCtx.Scheduler.Start(ctx)\n"
    assert (copy / "go.sum").read_text() == "sums\n"
    assert (module / "pkg/run.go").read_text() == SOURCE


def test_anchors_are_short() -> None:
    assert max(len(each.anchor) for each in edits.EDITS) < 100


def test_what_is_added_says_whose_it_is() -> None:
    for file in edits.ADDED.values():
        assert "Part of tests/kube_tests" in file.read_text(encoding="utf-8")[:200]
