"""A configuration of kosmos-scheduler: its plugins at its points, read by Stowplan as it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.objects.errors import ConfigError

# As kosmos-scheduler is configured: each plugin of its own takes the place of one of Kubernetes, point by point.
DOCUMENT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: kosmos-scheduler, resourceNamespace: kosmos-system}
profiles:
  - schedulerName: kosmos-scheduler
    plugins:
      preFilter:
        disabled: [{name: VolumeBinding}]
        enabled: [{name: LeafNodeVolumeBinding}, {name: LeafNodeWorkloadPolicy}]
      filter:
        disabled: [{name: VolumeBinding}, {name: TaintToleration}]
        enabled:
          - name: LeafNodeTaintToleration
          - name: LeafNodeVolumeBinding
          - name: LeafNodeDistribution
          - name: LeafNodeWorkloadPolicy
      score:
        disabled: [{name: VolumeBinding}]
        enabled: [{name: LeafNodeWorkloadPolicy}]
      reserve:
        disabled: [{name: VolumeBinding}]
        enabled: [{name: LeafNodeVolumeBinding}, {name: LeafNodeWorkloadPolicy}]
      preBind:
        disabled: [{name: VolumeBinding}]
        enabled: [{name: LeafNodeVolumeBinding}]
    pluginConfig:
      - name: LeafNodeVolumeBinding
        args: {bindTimeoutSeconds: 5}
      - name: LeafNodeDistribution
        args: {kubeConfigPath: /etc/kubernetes/kubeconfig}
      - name: LeafNodeWorkloadPolicy
        args: {kubeConfigPath: /etc/kubernetes/kubeconfig}
"""


def a_document() -> Any:
    return copy.deepcopy(yaml.safe_load(DOCUMENT))


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2", "v1beta3"])
def test_it_is_read_as_it_is(version: str) -> None:
    document = {**a_document(), "apiVersion": f"kubescheduler.config.k8s.io/{version}"}
    configuration, profiles = profile_loader.configured(document)
    profile = profiles["kosmos-scheduler"]
    names = {point: [each.name for each in at] for point, at in profile.points.items()}
    assert "VolumeBinding" not in {*names["preFilter"], *names["filter"], *names["reserve"], *names["preBind"]}
    own = ["LeafNodeTaintToleration", "LeafNodeVolumeBinding", "LeafNodeDistribution", "LeafNodeWorkloadPolicy"]
    assert [name for name in names["filter"] if name.startswith("Leaf")] == own
    assert "TaintToleration" in names["score"] and "TaintToleration" not in names["filter"]
    unused = [note for note in configuration.notes if "kubeConfigPath is not used" in note]
    old = [note for note in configuration.notes if "is old" in note]
    assert (len(unused), len(old)) == (2, version != "v1")
    assert len(configuration.notes) == len(unused) + len(old)


@pytest.mark.parametrize(
    ("point", "other", "own"),
    [
        pytest.param("filter", "TaintToleration", "LeafNodeTaintToleration", id="taints"),
        pytest.param("filter", "VolumeBinding", "LeafNodeVolumeBinding", id="volumes"),
        pytest.param("reserve", "VolumeBinding", "LeafNodeVolumeBinding", id="volumes that are reserved"),
    ],
)
def test_a_default_plugin_that_is_left_beside_it_is_noted(point: str, other: str, own: str) -> None:
    document = a_document()
    plugins = document["profiles"][0]["plugins"][point]
    plugins["disabled"] = [each for each in plugins["disabled"] if each["name"] != other]
    configuration, _ = profile_loader.configured(document)
    expected = f"profiles[0].plugins: {other} is at {point}, too, so {own} has no effect of its own there; "
    assert expected + f"disable {other} at {point}" in configuration.notes


def test_a_plugin_that_kosmos_does_not_have_is_an_error() -> None:
    document = a_document()
    document["profiles"][0]["plugins"]["filter"]["enabled"].append({"name": "LeafNodeTaintTolerance"})
    with pytest.raises(ConfigError, match='did you mean "LeafNodeTaintToleration"'):
        profile_loader.configured(document)
