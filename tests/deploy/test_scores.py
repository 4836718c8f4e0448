"""deploy/scores agrees with the code: valid arguments, and exactly the rights that are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps.score_agent.commands import PORT, PRODUCERS
from tests.deploy.test_manifests import VERSION

SCORES = Path(__file__).parents[2] / "deploy" / "scores"
GROUP = "cluster.open-cluster-management.io"
ON_THE_HUB = ("prometheus", "http", "static")


def documents(file: str) -> list[Any]:
    return list(yaml.safe_load_all((SCORES / file).read_text(encoding="utf-8")))


def only(file: str, kind: str) -> Any:
    (found,) = (each for each in documents(file) if each["kind"] == kind)
    return found


def patched(folder: str, kind: str) -> list[Any]:
    """The patches of a folder."""
    (kustomization,) = documents(f"{folder}/kustomization.yaml")
    (patch,) = (each["patch"] for each in kustomization["patches"] if each["target"]["kind"] == kind)
    found: list[Any] = yaml.safe_load(patch)
    return found


def arguments(folder: str) -> list[str]:
    if folder == "usage":
        pod = only("usage/cluster/deployment.yaml", "Deployment")["spec"]["template"]["spec"]
        found: list[str] = pod["containers"][0]["args"]
        return found
    (operation,) = patched(folder, "Deployment")
    return [str(each) for each in operation["value"]]


@pytest.mark.parametrize("folder", ["usage", *ON_THE_HUB])
def test_the_command_line_is_valid(folder: str) -> None:
    producer, *words = arguments(folder)
    assert producer == folder
    PRODUCERS[producer].make_context(producer, words)


@pytest.mark.parametrize("folder", ON_THE_HUB)
def test_the_rights_name_the_object_that_is_written(folder: str) -> None:
    (named,) = (each.partition("=")[2] for each in arguments(folder) if each.startswith("--resource-name="))
    rules = only("hub/rbac.yaml", "ClusterRole")["rules"]
    for operation in patched(folder, "ClusterRole"):
        _, _, number, field = operation["path"].split("/")
        rules[int(number)][field] = operation["value"]
    assert [rule["resourceNames"] for rule in rules if "resourceNames" in rule] == [[named], [named]]


def granted(file: str, kind: str) -> set[tuple[str, str, bool]]:
    """Verb, kind, and whether the right is for one object by name."""
    return {
        (verb, resource, "resourceNames" in rule)
        for rule in only(file, kind)["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


WRITES = {
    ("get", "addonplacementscores", True),
    ("create", "addonplacementscores", False),
    ("patch", "addonplacementscores/status", True),
}


@pytest.mark.parametrize(
    ("file", "kind", "needed"),
    [
        pytest.param("usage/hub/rbac.yaml", "Role", WRITES, id="an agent on the hub, in its namespace"),
        pytest.param(
            "usage/cluster/rbac.yaml",
            "ClusterRole",
            {(verb, resource, False) for verb in ("list", "watch") for resource in ("nodes", "pods")},
            id="an agent in its cluster",
        ),
        pytest.param(
            "hub/rbac.yaml",
            "ClusterRole",
            WRITES
            | {(verb, "addonplacementscores", True) for verb in ("list", "watch")}
            | {(verb, "managedclusters", False) for verb in ("list", "watch")},
            id="a producer on the hub",
        ),
    ],
)
def test_the_rights_are_exactly_those_needed(file: str, kind: str, needed: set[tuple[str, str, bool]]) -> None:
    assert granted(file, kind) == needed


# -- what is opt-in


def component(folder: str, kind: str) -> list[Any]:
    """The patches of a component for a kind."""
    (found,) = documents(f"{folder}/kustomization.yaml")
    assert found["kind"] == "Component"
    patches = [each["patch"] for each in found["patches"] if each["target"]["kind"] == kind]
    return [operation for patch in patches for operation in yaml.safe_load(patch)]


@pytest.mark.parametrize("name", ["renewal", "metrics-server"])
def test_the_command_line_with_a_component_is_valid(name: str) -> None:
    more = [each["value"] for each in component(f"usage/cluster/{name}", "Deployment")]
    usage, *words = arguments("usage")
    assert more
    PRODUCERS[usage].make_context(usage, [*words, *more])


def test_an_agent_that_renews_its_token_may_do_that_and_nothing_more() -> None:
    """One account on the hub; one Secret in the cluster, the one that is mounted and that the arguments name."""
    (on_hub,) = component("usage/hub/renewal", "Role")
    account = only("usage/hub/rbac.yaml", "ServiceAccount")["metadata"]["name"]
    assert on_hub["value"] == {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": [account],
        "verbs": ["create"],
    }
    pod = only("usage/cluster/deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    (volume,) = pod["volumes"]
    role = only("usage/cluster/renewal/rbac.yaml", "Role")
    (rule,) = role["rules"]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (
        ["secrets"],
        [volume["secret"]["secretName"]],
        ["patch"],
    )
    named = f"--hub-token-secret={role['metadata']['namespace']}/{volume['secret']['secretName']}"
    assert named in [each["value"] for each in component("usage/cluster/renewal", "Deployment")]


def test_the_metrics_of_nodes_may_be_listed() -> None:
    (rule,) = component("usage/cluster/metrics-server", "ClusterRole")
    assert rule["value"] == {"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"]}


@pytest.mark.parametrize("file", ["hub/deployment.yaml", "usage/cluster/deployment.yaml"])
def test_probes_ask_the_port_of_the_pages(file: str) -> None:
    (container,) = only(file, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "https", "containerPort": PORT, "protocol": "TCP"}]
    probes = {name: container[name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")}
    assert probes == {"livenessProbe": "/livez", "readinessProbe": "/readyz"}


@pytest.mark.parametrize("folder", ["usage/cluster", *ON_THE_HUB])
def test_the_image_is_of_this_version(folder: str) -> None:
    (kustomization,) = documents(f"{folder}/kustomization.yaml")
    (image,) = kustomization["images"]
    assert (image["name"], image["newTag"]) == ("stowplan", VERSION)
