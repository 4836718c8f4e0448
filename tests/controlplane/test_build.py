"""What is built, what is not built again, and what comes ready-made. Go is played by ten lines of shell."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.process import until

GO = """#!/bin/sh
echo "$@" >>"$GO_CALLS"
echo "GOCACHE $GOCACHE" >>"$GO_CALLS"
case "$1 $2" in
"mod download") echo '{"GoMod": "/its/go.mod"}' ;;
"mod edit") echo '{"Go": "1.26.0", "Replace": [
                   {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
                   {"Old": {"Path": "k8s.io/fork"}, "New": {"Path": "example.com/fork"}}]}' ;;
"build -o") echo binary >"$3"; test -z "$GO_FAILS" || { echo "cannot find module"; exit 1; } ;;
esac
"""


class Go:
    """The fake on the PATH, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        program = folder / "go"
        program.write_text(GO)
        program.chmod(0o755)

    def caches(self) -> set[Path]:
        """The build caches used since the last question about programs."""
        lines = self._calls.read_text().splitlines()
        return {Path(line.split()[1]) for line in lines if line.startswith("GOCACHE")}

    def built(self) -> list[str]:
        """Which programs were built since the last question."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return [line.split()[2] for line in lines if line.startswith("build")]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "usual"))
    monkeypatch.delenv("GO_FAILS", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return Go(tmp_path)


ALL = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"]


def silent(line: str) -> None:
    """A build that has nothing to do prints nothing."""


def test_each_program_is_built_once_and_told_of(go: Go) -> None:
    lines: list[str] = []
    programs = build.programs(tell=lines.append)
    assert go.built() == [*programs] == ALL
    assert all(path.exists() for path in programs.values())
    assert [line.split(" in ")[0] for line in lines if line.startswith("built")][:2] == [
        "built etcd 3.6.8",
        f"built kube-apiserver {build.MAIN}",
    ]
    build.programs(tell=silent)
    assert go.built() == []


def test_the_next_version_shares_all_but_the_servers(go: Go) -> None:
    build.programs(tell=silent)
    go.built()
    build.programs(build.NEXT, tell=silent)
    assert go.built() == ["kube-apiserver", "kube-controller-manager"]


def test_what_is_left_out_is_not_built(go: Go) -> None:
    left_out = ("kube-controller-manager", "kwok")
    programs = build.programs(build.OLDER[0], tell=silent, without=left_out)
    assert go.built() == [*programs] == [each for each in ALL if each not in left_out]


def test_a_staging_module_is_replaced_by_its_published_version_and_a_fork_is_not(go: Go) -> None:
    path = build.programs(tell=silent)["kube-apiserver"].with_name("go.mod")
    assert path.read_text().splitlines() == [
        "module stowplan.test/kubernetes",
        "go 1.26.0",
        f"require k8s.io/kubernetes v{build.MAIN}",
        "replace k8s.io/api => k8s.io/api v0.36.4",
    ]


def test_a_build_that_failed_names_what_go_said_and_is_done_again(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO_FAILS", "1")
    with pytest.raises(RuntimeError, match="cannot find module"):
        build.programs(tell=silent)
    monkeypatch.delenv("GO_FAILS")
    go.built()
    build.programs(tell=silent)
    assert go.built() == ALL, "what the failed build left behind does not count"


def test_a_program_of_another_recipe_is_built_again(go: Go) -> None:
    path = build.programs(tell=silent)["etcd"]
    go.built()
    path.with_name("etcd.recipe").write_text("[]")
    build.programs(tell=silent)
    assert go.built() == ["etcd"]


def test_the_usual_build_cache_is_used_where_there_is_room(go: Go, tmp_path: Path) -> None:
    build.programs(tell=silent)
    assert go.caches() == {tmp_path / "usual"}


def test_where_disk_is_scarce_the_build_cache_goes_with_the_build(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SCARCE", 1 << 80)
    build.programs(tell=silent)
    [cache] = go.caches()
    assert cache.parent == build.cache()
    assert not cache.exists()


def test_who_comes_second_waits_for_the_lock_and_builds_nothing_again(go: Go) -> None:
    lines: list[str] = []
    with ThreadPoolExecutor() as threads:
        with build.locked(silent):
            second = threads.submit(build.programs, tell=lines.append)
            until("the second waits", lambda: lines)
            for program, module in build.sources(build.MAIN).items():
                build.build_one(program, module, os.environ)
        second.result()
    assert lines == ["another process builds the control plane; waiting for it ..."]
    assert go.built() == ALL


def test_ready_made_programs_go_first_and_stand_for_the_main_version_only(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    (tmp_path / "assets").mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / "assets" / name).touch()
    assert build.programs(tell=silent)["kube-apiserver"] == tmp_path / "assets" / "kube-apiserver"
    assert go.built() == ["kube-controller-manager", "kube-scheduler", "kwok"]
    build.programs(build.NEXT, tell=silent)
    assert go.built() == ["kube-apiserver", "kube-controller-manager"]


def test_without_go_what_is_missing_is_named(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.programs(tell=silent)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert list(build.programs(tell=silent)) == ALL, "what was built before is there without Go"
    with pytest.raises(build.CannotBuildError, match="no Go to build kube-apiserver, kube-controller-manager with"):
        build.programs(build.NEXT, tell=silent)
