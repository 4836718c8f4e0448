"""The table of figures over commits."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.history import HIGHER, LOWER, Entry

from benchmarks import history


def entry(commit: str, value: float, figure: str = "basic", better: str = LOWER) -> Entry:
    return Entry("2026-01-01", commit, figure, 5000, value, "yardsticks", better)


def test_a_loss_is_named_and_noise_is_not() -> None:
    known = [entry("a", 4.0), entry("b", 2.0), entry("b", 3.0, "ratio", HIGHER)]
    assert list(history.losses(known, [entry("c", 2.2), entry("c", 2.9, "ratio", HIGHER)])) == []
    (slower,) = history.losses(known, [entry("c", 3.0)])
    assert "1.50 times worse than 2 of b" in slower
    (lower,) = history.losses(known, [entry("c", 2.0, "ratio", HIGHER)])
    assert "1.50 times worse than 3 of b" in lower


def test_a_commit_is_not_compared_with_itself_and_keeps_its_last_figures() -> None:
    known = [entry("a", 1.0)]
    assert list(history.losses(known, [entry("a", 9.0)])) == []
    assert history.merged(known, [entry("a", 9.0)]) == [entry("a", 9.0)]


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = [entry("a", 1.25), entry("b", 2.5)]
    history.write(tmp_path / "history.csv", entries)
    assert history.read(tmp_path / "history.csv") == entries


def test_figures_of_all_three_files_are_taken_unless_they_are_old(tmp_path: Path) -> None:
    both = {"stowplan": 0.5, "kube_scheduler": 2.0}
    live = {
        "workload": "basic",
        "nodes": 5000,
        "counted_rounds": 2,
        "ratio": 3.0,
        "others_cores": both,
        "cpu_s_per_1000_pods": both,
        "peak_rss_mb": both,
    }
    noisy = {**live, "workload": "spread", "counted_rounds": 0}
    memory = [{"workload": "basic", "nodes": 500, "yardsticks": 4.0}, {"workload": "spread", "why": "no"}]
    (tmp_path / "bench.json").write_text(json.dumps(memory))
    (tmp_path / "bench-live.json").write_text(json.dumps([live, noisy]))
    (tmp_path / "bench-scale.json").write_text(json.dumps([{"nodes": 100, "pods": 1000, "bytes_per_pod": 1400.0}]))
    found = {each.figure: each.value for each in history.entries(tmp_path, "a", since=0.0)}
    assert found == {
        "basic": 4.0,
        "live basic: ratio": 3.0,
        "live basic: CPU": 0.5,
        "live basic: peak RSS": 0.5,
        "scale bytes_per_pod": 1400.0,
    }
    assert list(history.entries(tmp_path, "a", since=float("inf"))) == []
