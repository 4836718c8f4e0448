"""The manifests agree with the code: exactly the rights that are needed, and valid settings."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from stowplan.apps import cli, http_server, profile_loader
from stowplan.kube.resources import RESOURCES
from stowplan.serving import descriptors
from tests.deploy import unit_files

VERSION = metadata.version("stowplan")
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

# What `kube/writer.py`, `kube/events.py` and a lost answer to a binding need.
WRITTEN = {
    ("", "pods"): {"get", "delete"},
    ("", "pods/binding"): {"create"},
    ("", "pods/status"): {"patch"},
    ("", "persistentvolumes"): {"patch"},
    ("", "persistentvolumeclaims"): {"patch"},
    ("events.k8s.io", "events"): {"create", "patch"},
    ("resource.k8s.io", "resourceclaims"): {"get", "create", "patch", "delete"},
    ("resource.k8s.io", "resourceclaims/status"): {"patch"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    ("resource.k8s.io", "resourceclaims/driver"): {"arbitrary-node:patch"},
}


def documents(file: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / file).read_text()))


def only(file: str, kind: str) -> Any:
    (found,) = (each for each in documents(file) if each["kind"] == kind)
    return found


def granted() -> dict[tuple[str, str], set[str]]:
    rights: dict[tuple[str, str], set[str]] = {}
    for rule in only("rbac.yaml", "ClusterRole")["rules"]:
        assert "resourceNames" not in rule
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


def test_the_cluster_role_matches_what_the_default_profile_reads_and_writes() -> None:
    _, profiles = profile_loader.defaults()
    needed: dict[tuple[str, str], set[str]] = {key: set(verbs) for key, verbs in WRITTEN.items()}
    for kind in profiles["default-scheduler"].reads:
        resource = RESOURCES[kind]
        needed.setdefault((resource.group, resource.plural), set()).update(("list", "watch"))
    assert granted() == needed


def test_docs_name_every_right() -> None:
    page = (ROOT / "docs" / "upgrades.md").read_text()
    for (group, resource), verbs in granted().items():
        rows = [line for line in page.splitlines() if line.startswith("|") and f"`{resource}`" in line]
        assert any((group or "core") in row and all(verb in row for verb in verbs) for row in rows), (group, resource)


def container() -> Any:
    return only("second-scheduler.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(only("second-scheduler.yaml", "ConfigMap")["data"]["config.yaml"])
    configuration, profiles = profile_loader.read_configuration(file)
    assert list(profiles) == ["stowplan"]
    assert configuration.leader_election.resource_name == "stowplan"
    assert not configuration.notes


def unit_command() -> list[str]:
    text = (DEPLOY / "systemd" / "stowplan.service").read_text()
    return unit_files.command(text, {"STOWPLAN_EXTEND": "--profiling=false --kube-api-qps=100"})[1:]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: [*container()["command"], *container()["args"]][1:], id="Deployment"),
        pytest.param(unit_command, id="systemd unit"),
        pytest.param(lambda: ["run", "-v=4", "--leader-elect"], id="charts for kube-scheduler"),
    ],
)
def test_the_command_line_is_valid(given: Any) -> None:
    words = given()
    assert words[0] == "run"
    context = cli.run.make_context("run", words[1:])
    assert isinstance(context, click.Context)


def test_the_image_is_of_this_version() -> None:
    assert container()["image"] == f"stowplan:{VERSION}"
    (image,) = only("kustomization.yaml", "Kustomization")["images"]
    assert (image["name"], image["newTag"]) == ("stowplan", VERSION)


def test_the_grace_period_is_longer_than_the_end_of_the_program() -> None:
    from stowplan.apps.run.service import SchedulerService

    pod = only("second-scheduler.yaml", "Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > SchedulerService.finish_within + SchedulerService.drain_within
    assert "TimeoutStopSec=65" in (DEPLOY / "systemd" / "stowplan.service").read_text()


PAGES = [
    "second-scheduler.yaml", "placement/deployment.yaml", "follow/deployment.yaml", "scores/hub/deployment.yaml",
    "scores/usage/cluster/deployment.yaml",
]  # fmt: skip


@pytest.mark.parametrize("file", PAGES)
def test_only_scrapers_and_probes_reach_the_pages(file: str) -> None:
    policy, deployment = only(file, "NetworkPolicy"), only(file, "Deployment")
    pod = deployment["spec"]["template"]
    assert policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress"], "where it connects to is the cluster's to say"
    (rule,) = policy["spec"]["ingress"]
    assert [peer.keys() for peer in rule["from"]] == [{"namespaceSelector"}]
    ports = [port["name"] for port in pod["spec"]["containers"][0]["ports"]]
    assert [port["port"] for port in rule["ports"]] == ports


def test_the_unit_gives_enough_files_for_all_connections() -> None:
    (line,) = (
        line
        for line in (DEPLOY / "systemd" / "stowplan.service").read_text().splitlines()
        if line.startswith("LimitNOFILE=")
    )
    assert int(line.partition("=")[2]) >= http_server.MOST_CONNECTIONS + descriptors.RESERVE
