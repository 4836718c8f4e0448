"""The chart as helm renders it, the manifests as kustomize does, and what both have to agree on.

Left out of the comparison: namespaces, which helm makes itself (--create-namespace); labels of objects (not those of
pods and selectors); and labels that only Helm's releases have.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import build
from tests.deploy import tools

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "charts" / "stowplan"
RELEASE = "stowplan"

# Of each object that the chart makes, pods and selectors included.
OF_HELM = {
    "helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of",
}  # fmt: skip
KEPT = "helm.sh/resource-policy"  # definitions stay when the release goes
NEW_CODE = "stowplan.io/plugins"  # kustomize gives the ConfigMap of plugins a new name instead
RENAMED = {"system:sp-scheduler": "stowplan:sp-priority"}  # the original's name does not say which release it is of

# With braces, which Prometheus and Grafana use as well as Helm does.
GROUP = {
    "name": "of-a-test",
    "rules": [{"alert": "A", "expr": "up == 0", "annotations": {"summary": "{{ $labels.pod }}"}}],
}
DASHBOARD = json.dumps({"title": "{{ x }}", "panels": [1]}, indent=2)

Objects = dict[tuple[str, str, str], Any]


def template(values: Mapping[str, Any], namespace: str = "kube-system", chart: Path = CHART) -> list[Any]:
    """The documents of `helm template`; `values` are those of a --values file."""
    done = render(values, namespace, chart)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def render(
    values: Mapping[str, Any], namespace: str = "kube-system", chart: Path = CHART
) -> subprocess.CompletedProcess[str]:
    words = ["template", RELEASE, str(chart), "--namespace", namespace, "--values", "-"]
    command = [str(tools.built(tools.HELM)), *words]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)


def kustomize(folder: Path) -> list[Any]:
    """The documents of `kubectl kustomize`."""
    kubectl = build.programs(build.MAIN)["kubectl"]
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def comparable(documents: Iterable[Any], *ignored_labels: str) -> Objects:
    """What each object says, by kind, namespace and name."""
    found: Objects = {}
    for document in documents:
        if document["kind"] == "Namespace":
            continue
        each = without(document, OF_HELM | {KEPT, NEW_CODE, *ignored_labels})
        about = each["metadata"]
        about.pop("labels", None)
        about["name"] = plain(about["name"])
        if "roleRef" in each:
            each["roleRef"]["name"] = plain(each["roleRef"]["name"])
            each["subjects"] = sorted(each["subjects"], key=json.dumps)
        if "rules" in each:
            each["rules"] = sorted(rights(each["rules"]))
        if each["kind"] == "ConfigMap":
            each["data"] = {name: parsed(name, text) for name, text in each["data"].items()}
        if each["kind"] == "Deployment":
            for volume in each["spec"]["template"]["spec"].get("volumes", ()):
                if "configMap" in volume:
                    volume["configMap"]["name"] = plain(volume["configMap"]["name"])
        key = (each["kind"], about.get("namespace", ""), about["name"])
        assert key not in found, f"{key} is there twice"
        found[key] = each
    return found


def without(tree: Any, keys: set[str]) -> Any:
    """A copy without entries of these keys, and without the maps that are empty then."""
    if isinstance(tree, list):
        return [without(each, keys) for each in tree]
    if not isinstance(tree, dict):
        return tree
    kept = {key: without(value, keys) for key, value in tree.items() if key not in keys}
    return {key: value for key, value in kept.items() if not (value == {} and tree[key] != {})}


def plain(name: str) -> str:
    if name.startswith("stowplan-plugins-"):
        return "stowplan-plugins"
    return RENAMED.get(name, name)


def parsed(name: str, text: str) -> Any:
    return yaml.safe_load(text) if name.endswith(".yaml") else text


def rights(rules: Any) -> set[tuple[str, ...]]:
    """One right by one: group, resource, name, verb."""
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule.get("apiGroups", ["(none)"])
        for resource in rule.get("resources", rule.get("nonResourceURLs"))
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


@functools.cache
def values_file(name: str) -> Any:
    return yaml.safe_load((CHART / "values" / f"{name}.yaml").read_text(encoding="utf-8"))


def copied(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """deploy/ in a folder, with changes as comments of its files propose them: (file, text, instead)."""
    for file in DEPLOY.rglob("*"):
        if file.is_file() and "charts" not in file.parts:
            copy = folder / file.relative_to(DEPLOY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    for name, text, instead in changes:
        file = folder / name
        before = file.read_text(encoding="utf-8")
        assert text in before, f"{name} has no {text!r}"
        file.write_text(before.replace(text, instead), encoding="utf-8")
    return folder


def with_monitoring(folder: Path) -> Path:
    """The chart in a folder, with a rule and a dashboard more."""
    shutil.copytree(CHART, folder)
    own = folder / "files" / "monitoring"
    (own / "dashboards").mkdir(parents=True, exist_ok=True)
    rules = own / "alerts.yaml"
    groups = yaml.safe_load(rules.read_text(encoding="utf-8"))["groups"] if rules.exists() else []
    rules.write_text(yaml.safe_dump({"groups": [*groups, GROUP]}), encoding="utf-8")
    (own / "dashboards" / "a_b.json").write_text(DASHBOARD, encoding="utf-8")
    return folder
