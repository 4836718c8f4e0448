"""`stowplan place follow` with a hub and member clusters: what is created, brought back and deleted, and when."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.place.follow.manifest import FOLLOWER, MANAGED_BY
from stowplan.objects.placements import GROUP
from tests.apps.place.follow.fleet import WORKLOAD, RunningFollower, TestFleet, a_fleet
from tests.controlplane.flags import free_port

DEPLOYMENT = ("Deployment", "default/web")
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEAS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "teas.e.com"},
    "spec": {
        "group": "e.com",
        "scope": "Cluster",
        "names": {"kind": "Tea", "plural": "teas"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}],
    },
}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[TestFleet]:
    with a_fleet(tmp_path, "east", "west") as found:
        yield found


def run(fleet: TestFleet, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, fleet.words(*more))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout if "--dry-run" in more else done.output


# -- over time


def test_a_workload_moves_with_the_decisions(fleet: TestFleet) -> None:
    with RunningFollower(fleet.options()) as follower:
        fleet.choose("east")
        fleet.waits_until("east")
        fleet.choose("west", slices=1)
        fleet.waits_until("west")
        fleet.choose("east", "west", slices=2)
        fleet.waits_until("east", "west")
        fleet.choose(slices=2)
        fleet.waits_until()
        fleet.hub.wait_until(lambda: fleet.members["east"].get("Namespace", "shop") is None)
    moved = re.findall(r'"(Created|Deleted)" cluster="(\w+)" kind="Deployment"', follower.log)
    assert moved[:3] == [("Created", "east"), ("Created", "west"), ("Deleted", "east")], "first create, then delete"


def test_what_somebody_changes_is_brought_back(fleet: TestFleet) -> None:
    fleet.choose("east")
    east = fleet.members["east"]
    with RunningFollower(fleet.options()) as follower:
        fleet.waits_until("east")
        east.apply(SETTINGS | {"data": {"colour": "red", "a": "b"}})
        east.wait_until(lambda: settings(fleet) == {"colour": "blue", "a": "b"})
        east.delete(*DEPLOYMENT)
        fleet.waits_until("east")
        fleet.manifest.write_text(WORKLOAD.replace("colour: blue", "shade: dark"))
        east.wait_until(lambda: settings(fleet) == {"shade": "dark", "a": "b"})
        fleet.manifest.write_text("not a manifest")
        east.wait_until(lambda: "what was read before stays in force" in follower.log)
        fleet.manifest.write_text(WORKLOAD.partition("---")[2].partition("---")[0])
        east.wait_until(lambda: east.get(*DEPLOYMENT) is None)
        assert settings(fleet) == {"colour": "blue", "a": "b"}
    assert follower.log.count('"Brought back"') <= 4, "an object that is as it should be is not written again"


def settings(fleet: TestFleet) -> Any:
    return (fleet.members["east"].get("ConfigMap", "shop/settings") or {}).get("data")


def test_only_objects_that_it_made_are_touched(fleet: TestFleet) -> None:
    east, west = fleet.members["east"], fleet.members["west"]
    mine = WORKLOAD.rpartition("---")[2].replace("nginx", "mine")
    for cluster in (east, west):
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", mine)
    fleet.choose("east")
    with RunningFollower(fleet.options()) as follower:
        east.wait_until(lambda: "this follower did not make it" in follower.log)
        east.delete(*DEPLOYMENT)
        fleet.hub.wait_until(lambda: "in order again" in follower.log)
        labels = (east.get(*DEPLOYMENT) or {})["metadata"]["labels"]
        assert (labels[MANAGED_BY], labels[FOLLOWER]) == ("stowplan-follow", "default.web")
        fleet.choose()
        east.wait_until(lambda: east.get(*DEPLOYMENT) is None)
        assert east.get("Namespace", "shop") is not None, "it was there before"
    assert (west.get(*DEPLOYMENT) or {})["spec"]["template"]["spec"]["containers"][0]["image"] == "mine"


def test_objects_that_exist_are_adopted_if_asked(fleet: TestFleet) -> None:
    east = fleet.members["east"]
    east.apply(WORKLOAD.rpartition("---")[2].replace("nginx", "mine"))
    fleet.choose("east")
    assert run(fleet, "--once", "--adopt")[0] == 0
    assert (east.get(*DEPLOYMENT) or {})["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx"


def test_a_dead_cluster_delays_no_other_and_is_tried_again(fleet: TestFleet, tmp_path: Path) -> None:
    dead = tmp_path / "clusters"
    dead.mkdir()
    text = fleet.members["west"].kubeconfig.read_text()
    (dead / "west").write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9", text))
    options = fleet.options(clusters={"east": fleet.members["east"].kubeconfig}, clusters_dir=dead)
    fleet.choose("east", "west")
    with RunningFollower(options) as follower:
        fleet.waits_until("east")
        fleet.hub.wait_until(lambda: 'not in order" cluster="west"' in follower.log)
        fleet.choose("west")
        fleet.hub.wait_until(lambda: 'clusters="west"' in follower.log)
        fleet.hub.wait_until(lambda: follower.log.count('tried again" cluster="west"') >= 2)
        assert fleet.having() == {"east"}, "the last copy stays until another one is there"
        (dead / "west").write_text(text)
        fleet.waits_until("west")


def test_decisions_that_vanish_delete_nothing(fleet: TestFleet) -> None:
    fleet.choose("east", "west")
    hub = fleet.hub
    with RunningFollower(fleet.options()) as follower:
        fleet.waits_until("east", "west")
        hub.delete("PlacementDecision", "default/web-0")
        hub.wait_until(lambda: "its decisions name 0 clusters, its status says 2" in follower.log)
        hub.delete("Placement", "default/web")
        hub.wait_until(lambda: "the Placement does not exist" in follower.log)
        for plural in ("placements", "placementdecisions"):
            hub.delete("CustomResourceDefinition", f"{plural}.{GROUP}")
        hub.wait_until(lambda: "the hub does not serve" in follower.log)
        fleet.members["east"].delete(*DEPLOYMENT)
        fleet.waits_until("east", "west")
    assert '"Deleted"' not in follower.log


def test_a_cluster_that_joins_later(fleet: TestFleet, tmp_path: Path) -> None:
    folder = tmp_path / "clusters"
    folder.mkdir()
    fleet.choose("east", "gone")
    with RunningFollower(fleet.options(clusters={}, clusters_dir=folder)) as follower:
        fleet.hub.wait_until(lambda: follower.log.count("There is no kubeconfig") == 2)
        (folder / "east.kubeconfig").write_text(fleet.members["east"].kubeconfig.read_text())
        fleet.waits_until("east")
        (folder / "broken").write_text("no: kubeconfig")
        fleet.hub.wait_until(lambda: "A file cannot be used" in follower.log)
        (folder / "east.kubeconfig").unlink()
        fleet.hub.wait_until(lambda: "The kubeconfig of a cluster is gone" in follower.log)
    assert fleet.having() == {"east"}


def test_its_pages_and_its_lease(fleet: TestFleet) -> None:
    from stowplan.apps.leader_election import ElectionSettings

    election = ElectionSettings(name="stowplan-follow-default.web", namespace="default")
    port = free_port()
    fleet.choose("east")
    with RunningFollower(fleet.options(plain_port=port, election=election)) as follower:
        fleet.waits_until("east")

        def page(path: str) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return str(answer.read().decode())

        assert page("/healthz") == page("/readyz") == "ok" and page("/leader") == "leading\n"
        fleet.hub.wait_until(lambda: 'stowplan_follow_clusters{state="settled"} 1.0' in page("/metrics"))
        assert 'stowplan_follow_writes_total{cluster="east",does="create"} 3.0' in page("/metrics")
        holder = (fleet.hub.get("Lease", "default/stowplan-follow-default.web") or {})["spec"]["holderIdentity"]
        assert holder and holder in follower.log


# -- once


def test_one_round(fleet: TestFleet) -> None:
    fleet.choose("east")
    assert run(fleet, "--dry-run") == (
        0,
        "east: create Namespace shop (v1)\n"
        "east: create ConfigMap shop/settings (v1)\n"
        "east: create Deployment default/web (apps/v1)\n"
        "west: nothing to do\n",
    )
    assert fleet.having() == set()
    code, said = run(fleet, "--once")
    assert code == 0 and fleet.having() == {"east"} and '"Created" cluster="east" kind="Namespace"' in said
    assert run(fleet, "--dry-run") == (0, "east: nothing to do\nwest: nothing to do\n")
    fleet.choose("west")
    assert "east: delete Deployment default/web (apps/v1)\n" in run(fleet, "--dry-run")[1]
    assert run(fleet, "--once")[0] == 0 and fleet.having() == {"west"}
    fleet.hub.delete("PlacementDecision", "default/web-0")
    code, said = run(fleet, "--once")
    assert code == 1 and "Nothing is removed from any cluster" in said and fleet.having() == {"west"}


def test_a_kind_that_the_manifest_defines(fleet: TestFleet) -> None:
    tea = "{apiVersion: e.com/v1, kind: Tea, metadata: {name: green}, spec: {hot: true}}"
    fleet.manifest.write_text(f"{tea}\n---\n{json.dumps(TEAS)}")
    fleet.choose("east")
    assert run(fleet, "--once")[0] == 0
    assert (fleet.members["east"].get("Tea", "green") or {})["spec"] == {"hot": True}
    assert run(fleet, "--dry-run") == (0, "east: nothing to do\nwest: nothing to do\n")
    fleet.choose("west")
    assert run(fleet, "--once")[0] == 0
    assert fleet.members["east"].get("CustomResourceDefinition", "teas.e.com") is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["web", "-f", "w.yaml"], "neither --cluster nor --clusters-dir", id="no clusters"),
        pytest.param(["a/b/c", "-f", "w.yaml"], "expected NAMESPACE/NAME", id="not a placement"),
        pytest.param(["a/b", "-n", "c", "-f", "w.yaml"], "expected NAMESPACE/NAME", id="two namespaces"),
        pytest.param(["web", "-f", "w.yaml", "--cluster", "x"], "expected NAME=KUBECONFIG", id="no kubeconfig"),
        pytest.param(["web", "-f", "no.yaml", "--cluster", "x=w.yaml"], "no.yaml: no such file", id="no manifest"),
        pytest.param(["web", "-f", "w.yaml", "--cluster", "x=no"], "expected a kubeconfig", id="no such kubeconfig"),
        pytest.param(["web", "-f", "w.yaml", "--resync-interval", "0s", "--cluster", "x=y"], "found 0s", id="0 s"),
        pytest.param(
            ["web", "-f", "w.yaml", "--cluster", "x=y", "--leader-elect-renew-deadline", "20s"],
            "expected lease_duration > renew_deadline",
            id="a lease too short",
        ),
    ],
)
def test_invalid_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["place", "follow", *words])
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output


def with_exec(fleet: TestFleet, file: Path, mark: Path) -> None:
    """Write a kubeconfig of east whose credentials come from a program, which leaves a mark."""
    document = yaml.safe_load(fleet.members["east"].kubeconfig.read_text())
    printed = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
    script = f"touch {mark}; echo '{json.dumps(printed)}'"
    program = {"apiVersion": printed["apiVersion"], "command": "sh", "args": ["-c", script], "interactiveMode": "Never"}
    for user in document["users"]:
        user["user"] = {"exec": program}
    file.write_text(yaml.safe_dump(document))


def test_a_folder_of_kubeconfigs_runs_no_program(fleet: TestFleet, tmp_path: Path) -> None:
    folder, mark = tmp_path / "clusters", tmp_path / "it-ran"
    folder.mkdir()
    with_exec(fleet, folder / "east.yaml", mark)
    fleet.choose("east")
    words = ["place", "follow", "default/web", "-f", fleet.manifest, "--kubeconfig", fleet.hub.kubeconfig, "--once"]
    done = CliRunner().invoke(main, [*map(str, words), "--clusters-dir", str(folder)])
    assert (done.exit_code, mark.exists(), fleet.having()) == (1, False, set())
    assert f"{folder / 'east.yaml'}: user.exec: found an exec plugin" in done.output
    assert "use --cluster east=FILE" in done.output
    done = CliRunner().invoke(main, [*map(str, words), "--cluster", f"east={folder / 'east.yaml'}"])
    assert mark.exists(), done.output
