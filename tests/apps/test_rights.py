"""The rights that `config check` prints: those that deploy/ grants by hand for our own policies, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps import profile_loader, rights
from stowplan.apps.cli import main
from stowplan.apps.rights import Rights

ROOT = Path(__file__).parents[2]
DEPLOY, EXAMPLES = ROOT / "deploy", ROOT / "examples"


def granted(*documents: Any) -> Rights:
    found: Rights = {}
    for role in documents:
        for rule in role["rules"] if role["kind"] == "ClusterRole" else ():
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


def in_file(*files: str) -> Rights:
    return granted(*(each for file in files for each in yaml.safe_load_all((DEPLOY / file).read_text())))


def test_what_deploy_grants() -> None:
    assert rights.granted() == in_file("rbac.yaml")


@pytest.mark.parametrize(
    ("config", "files"),
    [
        pytest.param("second-scheduler.yaml", [], id="the default profile"),
        pytest.param("profiles/secondary-scheduler/config.yaml", [], id="secondary-scheduler"),
        pytest.param(
            "profiles/kosmos-scheduler/config.yaml", ["profiles/kosmos-scheduler/rbac.yaml"], id="kosmos-scheduler"
        ),
        pytest.param(
            "profiles/kubenexus-scheduler/config.yaml",
            ["profiles/kubenexus-scheduler/rbac.yaml", "profiles/kubenexus-scheduler/reservations-rbac.yaml"],
            id="kubenexus-scheduler",
        ),
    ],
)
def test_what_our_own_policies_need_is_what_their_roles_grant(config: str, files: list[str]) -> None:
    documents = list(yaml.safe_load_all((DEPLOY / config).read_text()))
    (found,) = (each for each in documents if each["kind"] in ("KubeSchedulerConfiguration", "ConfigMap"))
    text = found["data"]["config.yaml"] if found["kind"] == "ConfigMap" else found
    _, profiles = profile_loader.configured(text)
    base = in_file("rbac.yaml")
    beyond = {key: verbs - base.get(key, set()) for key, verbs in in_file(*files).items()}
    assert rights.beyond(profiles.values()) == {key: verbs for key, verbs in beyond.items() if verbs}


PLUGIN = """
from stowplan.plugin import CustomResource, Object

class Team(Object, frozen=True):
    pass

class Teams:
    reads = ("Node", "Deployment", CustomResource(Team, group="example.com", version="v1", plural="teams",
             namespaced=False, writes=("create", "delete", "status")))
    writes = {"Deployment": ("patch",), "PersistentVolume": ("patch",), "Pod": ("status", "patch", "evict")}

    def filter(self, pod, nodes):
        return ()
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: "odd: name", plugins: {filter: {enabled: [{name: "teams.py:Teams"}]}}}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "teams.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "config.yaml"


def check(*arguments: str) -> str:
    answer = CliRunner().invoke(main, ["config", "check", *arguments])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_a_plugin_of_somebody_else(config: Path) -> None:
    role, binding = yaml.safe_load_all(check(str(config), "--rbac"))
    assert granted(role) == {
        ("apps", "deployments"): {"list", "watch", "patch"},
        ("example.com", "teams"): {"list", "watch", "create", "delete"},
        ("example.com", "teams/status"): {"patch"},
        ("", "pods"): {"patch"},
        ("", "pods/eviction"): {"create"},
    }
    assert role["metadata"]["name"] == binding["roleRef"]["name"] == "stowplan:plugins:odd: name"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "stowplan", "namespace": "kube-system"}]


def test_the_plain_answer_names_the_rights_and_the_command(config: Path) -> None:
    valid, needs, grant = check(str(config)).splitlines()
    assert valid == f"{config}: valid, 1 profile(s): odd: name"
    assert "list, watch, create, delete teams.example.com; patch teams.example.com/status" in needs
    assert grant.endswith(f"stowplan config check --rbac {config} | kubectl apply -f -")


def test_the_command_names_the_folders_with_code(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    config.with_name("teams.py").rename(folder / "teams.py")
    *_, grant = check(str(config), "--plugin-path", str(folder)).splitlines()
    assert grant.endswith(f"--rbac {config} --plugin-path {folder} | kubectl apply -f -")


def test_files_with_arguments_are_named(tmp_path: Path) -> None:
    """So nobody takes a file for checked that was not read."""
    file = tmp_path / "config.yaml"
    enabled = {"multiPoint": {"enabled": [{"name": "SPPriority"}]}}
    arguments = [{"name": "SPPriority", "args": {"configFile": "own.yaml"}}]
    document = {**yaml.safe_load(CONFIG), "profiles": [{"plugins": enabled, "pluginConfig": arguments}]}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    (tmp_path / "own.yaml").write_text("skipMultiReplica: true", encoding="utf-8")
    assert f"{tmp_path / 'own.yaml'}: read, valid\n" in check(str(file))
    answer = CliRunner().invoke(main, ["config", "check", str(tmp_path / "own.yaml")])
    assert answer.exit_code == 2 and "checked with the configuration that names it" in " ".join(answer.output.split())


def test_rights_are_not_printed_for_placements(tmp_path: Path) -> None:
    file = tmp_path / "place.yaml"
    file.write_text("apiVersion: stowplan.io/v1alpha1\nkind: PlacementConfiguration\n", encoding="utf-8")
    answer = CliRunner().invoke(main, ["config", "check", "--rbac", str(file)])
    assert answer.exit_code == 2 and "--rbac is for a KubeSchedulerConfiguration" in answer.output


def test_a_configuration_that_needs_nothing_more() -> None:
    file = str(EXAMPLES / "01-first-plugin" / "config.yaml")
    assert len(check(file).splitlines()) == 1
    role, _ = yaml.safe_load_all(check(file, "--rbac"))
    assert role["rules"] == [], "rights of an older configuration are taken back"


def test_mistakes_are_found_without_a_cluster(config: Path) -> None:
    plugin = config.with_name("teams.py")
    plugin.write_text(PLUGIN.replace('"Node", ', '"Unicorn", '), encoding="utf-8")
    answer = CliRunner().invoke(main, ["config", "check", str(config)])
    assert answer.exit_code == 2
    said = f'stowplan: {config}: plugin teams.py:Teams declares reads = ("Unicorn",), but kind Unicorn is unknown'
    assert said in answer.output


def test_two_plugins_in_one_file_share_its_types(config: Path) -> None:
    config.with_name("teams.py").write_text(f"{PLUGIN}\nclass More(Teams):\n    pass\n", encoding="utf-8")
    config.write_text(CONFIG.replace('"teams.py:Teams"}', '"teams.py:Teams"}, {name: "teams.py:More"}'))
    assert "valid" in check(str(config))
