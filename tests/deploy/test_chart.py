"""The chart says what the manifests say: helm renders the one, kustomize the other, and they are compared."""

from __future__ import annotations

import difflib
import importlib.util
import json
import re
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from stowplan.apps import profile_loader
from tests.deploy import charts, tools
from tests.deploy.charts import CHART, DEPLOY, ROOT, comparable, copied, kustomize, render, template, values_file

full = pytest.mark.full  # helm takes minutes to build

PLACEMENT: dict[str, Any] = {
    "scheduler": {"enabled": False},
    "placement": {"enabled": True, "fullnameOverride": "placement"},
}
NO_SCHEDULER = {"enabled": False}
CODE = (DEPLOY / "plugins" / "spot_last.py").read_text(encoding="utf-8")
PLUGIN_PROFILE = {
    "schedulerName": "stowplan",
    "plugins": {"multiPoint": {"enabled": [{"name": "spot_last.py:SpotLast", "weight": 10}]}},
}
EVERYTHING: dict[str, Any] = {
    "scheduler": {
        "plugins": {"files": {"spot_last.py": CODE}},
        "policies": ["coscheduling"],
        "files": {"a.yaml": "{}"},
    },
    "placement": {"enabled": True, "taintUnavailable": True},
    "scores": {"agents": {"fixed": {"producer": "static"}}, "hubAccounts": {"clusters": ["cluster1"]}},
    "crds": {"gangs": True, "workloadPolicy": True, "placement": True},
    "priorityClass": {"create": True},
    "monitoring": {"serviceMonitor": {"enabled": True}, "prometheusServiceAccount": {"name": "prometheus"}},
}


def components(*names: str) -> tuple[tuple[str, str, str], ...]:
    """What a user adds to deploy/kustomization.yaml."""
    return (("kustomization.yaml", "resources:\n", f"components: [{', '.join(names)}]\nresources:\n"),)


def agent(producer: str, resource: str = "", *arguments: str, **more: Any) -> dict[str, Any]:
    own = {"producer": producer, **({"resourceName": resource} if resource else {}), "args": [*arguments], **more}
    return {
        "scheduler": NO_SCHEDULER,
        "scores": {"fullnameOverride": "scores", "agents": {producer: own}},
    }


def arguments(folder: str) -> list[str]:
    """What the producer of that folder is called with, without what the chart says otherwise."""
    text = (DEPLOY / "scores" / folder / "kustomization.yaml").read_text(encoding="utf-8")
    (patch,) = (each["patch"] for each in yaml.safe_load(text)["patches"] if each["target"]["kind"] == "Deployment")
    (change,) = yaml.safe_load(patch)
    return [word for word in change["value"][1:] if not word.startswith("--resource-name=")]


USAGE = agent("usage", "", "--smooth=2m", "--deadband=3", clusterName="cluster1")
USAGE_RENEWED = agent("usage", "", "--smooth=2m", "--deadband=3", clusterName="cluster1", renewToken=True, actual=True)
STATIC = agent("static", "disasterrecovery", *arguments("static"))


@full
@pytest.mark.parametrize(
    ("values", "namespace", "folder", "changes"),
    [
        pytest.param({}, "kube-system", ".", (), id="a second scheduler"),
        pytest.param(
            {"scheduler": {"replaceKubeScheduler": True}}, "kube-system", ".", components("replace-kube-scheduler"),
            id="kube-scheduler's replacement",
        ),
        pytest.param(PLACEMENT, "stowplan-placement", "placement", (), id="a hub"),
        pytest.param(
            {**PLACEMENT, "placement": {**PLACEMENT["placement"], "taintUnavailable": True}}, "stowplan-placement",
            "placement",
            (("placement/kustomization.yaml", "# components:\n#   - failover", "components:\n  - failover"),),
            id="a hub that taints clusters",
        ),
        pytest.param(
            {"scheduler": NO_SCHEDULER, "crds": {"placement": True}}, "x", "crds/placement", (),
            id="definitions of a hub",
        ),
        pytest.param(
            agent("prometheus", "prometheus", *arguments("prometheus")), "stowplan-scores", "scores/prometheus", (),
            id="scores of a PromQL query",
        ),
        pytest.param(
            agent("http", "scorer", *arguments("http")), "stowplan-scores", "scores/http", (), id="scores of a server",
        ),
        pytest.param(STATIC, "stowplan-scores", "scores/static", (), id="fixed scores"),
        pytest.param(
            agent("static", "disasterrecovery", *arguments("static"), onDemand=True), "stowplan-scores",
            "scores/static",
            (
                ("scores/static/kustomization.yaml", "# components:", "components:"),
                ("scores/static/kustomization.yaml", "# - --on-demand", "- --on-demand"),
            ),
            id="fixed scores while they are asked for",
        ),
        pytest.param(USAGE, "stowplan-scores", "scores/usage/cluster", (), id="an agent in its cluster"),
        pytest.param(
            USAGE_RENEWED, "stowplan-scores", "scores/usage/cluster",
            (
                ("scores/usage/cluster/kustomization.yaml", "# components:", "components:"),
                ("scores/usage/cluster/kustomization.yaml", "#   - ", "  - "),
            ),
            id="an agent that renews its token, with real usage",
        ),
        pytest.param(
            {"scheduler": NO_SCHEDULER, "scores": {"hubAccounts": {"clusters": ["cluster1"]}}}, "x",
            "scores/usage/hub", (), id="an agent's account on the hub",
        ),
        pytest.param(
            {"scheduler": NO_SCHEDULER, "scores": {"hubAccounts": {"clusters": ["cluster1"], "renewToken": True}}}, "x",
            "scores/usage/hub", (("scores/usage/hub/kustomization.yaml", "# components:", "components:"),),
            id="an agent's account that renews its token",
        ),
        pytest.param(
            {"scheduler": {"profiles": [PLUGIN_PROFILE], "plugins": {"files": {"spot_last.py": CODE}}}}, "kube-system",
            ".", components("plugins"), id="plugins in a ConfigMap",
        ),
        *(
            pytest.param(values_file(name), "kube-system", ".", components(*parts), id=f"profile {name}")
            for name, parts in {
                "kubenexus-scheduler": ["profiles/kubenexus-scheduler"],
                "bin-packing": ["profiles/kubenexus-scheduler", "profiles/bin-packing"],
                "kosmos-scheduler": ["profiles/kosmos-scheduler"],
                "kosmos-keep-ratios": ["profiles/kosmos-scheduler", "profiles/kosmos-scheduler/keep-ratios"],
                "secondary-scheduler": ["profiles/secondary-scheduler"],
                "sp-priority": ["profiles/sp-priority"],
                "all": [
                    "profiles/kubenexus-scheduler", "profiles/kosmos-scheduler", "profiles/sp-priority", "profiles/all",
                ],
            }.items()
        ),
    ],
)  # fmt: skip
def test_chart_and_manifests_agree(
    values: dict[str, Any], namespace: str, folder: str, changes: Any, tmp_path: Path
) -> None:
    ignored = ["stowplan.io/producer"] if folder.startswith("scores/usage") else []  # one agent of it in a cluster
    theirs = comparable(kustomize(copied(tmp_path / "deploy", *changes) / folder), *ignored)
    ours = comparable(template(values, namespace), *ignored)
    assert theirs.keys() == ours.keys()
    for key, expected in theirs.items():
        assert not difference(expected, ours[key]), f"{key}\n{difference(expected, ours[key])}"


def difference(expected: Any, found: Any) -> str:
    theirs, ours = (yaml.safe_dump(each, width=200).splitlines() for each in (expected, found))
    return "\n".join(difflib.unified_diff(theirs, ours, "deploy/", "chart", lineterm=""))


@full
def test_leaf_nodes_have_the_rights_of_their_folder() -> None:
    rules = yaml.safe_load_all((DEPLOY / "profiles/kosmos-scheduler/leaf-nodes/rbac.yaml").read_text())
    more = yaml.safe_load_all((DEPLOY / "profiles/sp-priority/rbac-more-owners.yaml").read_text())
    values = {"scheduler": {"policies": ["leaf-nodes", "sp-priority-more-owners"]}}
    ours = comparable(template(values))
    for key, expected in comparable([*rules, *more]).items():
        assert ours[key] == expected


@full
def test_other_names_and_another_namespace() -> None:
    """Two releases do not touch each other's objects, wherever they are."""
    one = charts.comparable(template({}))
    values = {
        "fullnameOverride": "other",
        "scheduler": {"replaceKubeScheduler": True},
        "priorityClass": {"create": True},
    }
    other = template(values, "elsewhere")
    assert not one.keys() & charts.comparable(other).keys()
    found = {(each["kind"], each["metadata"]["name"]): each for each in other}
    assert {each["metadata"].get("namespace", "elsewhere") for each in other} == {"elsewhere", "kube-system"}
    config = yaml.safe_load(found["ConfigMap", "other"]["data"]["config.yaml"])
    lease = {"leaderElect": True, "resourceNamespace": "kube-system", "resourceName": "kube-scheduler"}
    assert config["leaderElection"] == lease
    assert found["Role", "other:kube-scheduler-lease"]["rules"][0]["verbs"] == ["get", "update"]
    pod = found["Deployment", "other"]["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "other" == found["PriorityClass", "other"]["metadata"]["name"]


@full
@pytest.mark.parametrize("namespace", ["kube-system", "elsewhere"])
@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["by default", "with everything"])
def test_selectors_find_the_pods_of_their_part(values: dict[str, Any], namespace: str) -> None:
    documents = template(values, namespace)
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in documents
        if each["kind"] == "Deployment"
    }
    selectors = {
        (each["kind"], each["metadata"]["name"]): selector
        for each in documents
        if (selector := selected(each)) is not None
    }
    assert len(selectors) >= 3 * len(pods) - 1, "Deployment, NetworkPolicy, and a budget where there are replicas"
    for (kind, name), selector in selectors.items():
        found = [pod for pod, labels in pods.items() if selector.items() <= labels.items()]
        part = name.removesuffix("-metrics")
        assert found == [part] or (part == "stowplan-scores" and found == ["stowplan-scores-fixed"]), (kind, name)


def selected(document: Any) -> Any:
    spec = document.get("spec", {})
    if document["kind"] == "NetworkPolicy":
        return spec["podSelector"]["matchLabels"]
    if document["kind"] == "Service":
        return spec["selector"]
    return spec["selector"]["matchLabels"] if document["kind"] in ("Deployment", "PodDisruptionBudget") else None


@full
def test_helm_finds_nothing_to_say() -> None:
    done = tools.run(tools.HELM, ["lint", "--strict", CHART])
    assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done.stdout + done.stderr
    assert not re.search(r"\[(WARNING|ERROR)\]", done.stdout), done.stdout


@full
@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"schedular": {}}, "additional properties 'schedular' not allowed", id="a wrong word"),
        pytest.param({"scheduler": {"securePort": "x"}}, "/scheduler/securePort", id="text for a number"),
        pytest.param({"scheduler": {"policies": ["gangs"]}}, "/scheduler/policies/0", id="an unknown policy"),
        pytest.param(
            {"scheduler": {"configuration": {"profiles": []}}}, "/scheduler/configuration", id="profiles at two places"
        ),
        pytest.param({"image": {"digest": "latest"}}, "/image/digest", id="a digest that is none"),
        pytest.param({"scores": {"agents": {"a": {"producer": "x"}}}}, "/scores/agents/a/producer", id="a producer"),
        pytest.param({"scores": {"agents": {"a": {"producer": "usage"}}}}, "clusterName", id="an agent of no cluster"),
        pytest.param(
            {"scores": {"agents": {name: {"producer": "usage", "clusterName": name} for name in "ab"}}},
            "a cluster has one agent of producer usage, not a and b",
            id="two agents of a cluster",
        ),
    ],
)
def test_wrong_values_are_refused_by_their_place(values: dict[str, Any], said: str) -> None:
    done = render(values)
    assert done.returncode == 1
    assert said in done.stderr.replace("at '/", "/"), done.stderr


@full
def test_monitoring_has_the_files_of_deploy_monitoring(tmp_path: Path) -> None:
    """The chart of a tree that has them: rules and dashboards arrive as they are written, braces and all."""
    chart = charts.with_monitoring(tmp_path / "stowplan")
    values = {"monitoring": {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}}
    found = {(each["kind"], each["metadata"]["name"]): each for each in template(values, chart=chart)}
    assert found["PrometheusRule", "stowplan"]["spec"]["groups"][-1] == charts.GROUP
    made = found["ConfigMap", "stowplan-dashboard-a-b"]
    assert made["data"] == {"a_b.json": charts.DASHBOARD} and made["metadata"]["labels"]["grafana_dashboard"] == "1"


# -- what needs no helm


def chart() -> Any:
    return yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))


def test_the_chart_is_of_this_version() -> None:
    assert chart()["appVersion"] == metadata.version("stowplan")


def test_every_value_is_in_the_schema_and_in_the_comments() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    validator.validate(values)
    for file in (CHART / "values").glob("*.yaml"):
        validator.validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert schema["properties"].keys() - {"global"} == values.keys()
    for name, part in values.items():
        properties = schema["properties"][name].get("properties", {})
        if isinstance(part, dict) and properties:
            assert properties.keys() == part.keys(), name


@pytest.mark.parametrize("file", sorted((CHART / "values").glob("*.yaml")), ids=lambda file: file.stem)
def test_profiles_are_valid(file: Path, tmp_path: Path) -> None:
    """And each names the permissions and the files that it needs."""
    scheduler = values_file(file.stem)["scheduler"]
    for name, text in scheduler.get("files", {}).items():
        (tmp_path / name).write_text(text)
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration, profiles = profile_loader.configured({**kind, "profiles": scheduler["profiles"]}, folder=tmp_path)
    assert profiles and not configuration.notes


def test_every_folder_of_profiles_has_its_values() -> None:
    theirs = {file.parent.name for file in (DEPLOY / "profiles").rglob("config.yaml")}
    ours = {file.stem.replace("kosmos-keep-ratios", "keep-ratios") for file in (CHART / "values").glob("*.yaml")}
    assert theirs == ours


def chart_files() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chart_files", ROOT / "packaging" / "chart_files.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_charts_copies_are_those_of_deploy() -> None:
    """`make chart` copies them again."""
    module = chart_files()
    expected = module.wanted()
    assert len(expected) >= 9
    assert list(module.differences(expected)) == []


def test_a_copy_that_differs_is_found(tmp_path: Path) -> None:
    module = chart_files()
    expected = module.wanted(DEPLOY, tmp_path)
    for file, content in expected.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    first, second, *_ = sorted(expected)
    first.unlink()
    second.write_text("changed")
    (tmp_path / "more.yaml").write_text("more")
    assert [*module.differences(expected, tmp_path)] == sorted([first, second, tmp_path / "more.yaml"])
