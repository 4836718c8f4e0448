"""Leases, events, quotas and workloads with values of another type: an error that names them, or they are ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.explain.sources import _mapping
from tests.apps.explain.test_explain import NODES, dump

POD = "{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: default}, spec: {containers: [{name: a, image: i}]}}"
HEAD = "apiVersion: v1\nkind: %s\nmetadata: {name: x, namespace: %s}\n"
WORKLOAD = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: default}\nspec: {completions: many, %s}"
TEMPLATE = "template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}"


def answered(folder: Path, there: str, manifest: str, *more: str) -> str:
    """Return what is printed of input that cannot be used."""
    (folder / "there.yaml").write_text(f"{POD}\n---\n{there}", encoding="utf-8")
    (folder / "manifest.yaml").write_text(manifest, encoding="utf-8")
    asked = ("-f", str(folder / "manifest.yaml"), *more) if manifest else ("p",)
    files = ("--from", dump(folder, *NODES), "--from", str(folder / "there.yaml"))
    answer = CliRunner().invoke(main, ["explain", *asked, *files])
    assert answer.exit_code == 2, answer.output
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return " ".join(answer.output.split())


@pytest.mark.parametrize(
    ("there", "told"),
    [
        pytest.param(
            HEAD % ("Lease", "kube-system") + "spec: {leaseDurationSeconds: abc}",
            'there.yaml: Lease x: spec.leaseDurationSeconds: found "abc"; write a number',
            id="the duration of a lease",
        ),
        pytest.param(
            HEAD % ("Event", "default") + "involvedObject: {kind: Pod, name: p, namespace: default}\ncount: many",
            'there.yaml: Event x: count: found "many"; write a whole number',
            id="the count of an event",
        ),
        pytest.param(
            HEAD % ("Event", "default") + "involvedObject: p",
            'there.yaml: Event x: involvedObject: found "p"; write a mapping',
            id="what an event is about",
        ),
        pytest.param(
            HEAD % ("LimitRange", "default") + "spec: {limits: 7}",
            "there.yaml: LimitRange x: spec.limits: found 7; write a list",
            id="a LimitRange",
        ),
        pytest.param(
            HEAD % ("ResourceQuota", "default") + "spec: [1]",
            "there.yaml: ResourceQuota x: spec: found [1]; write a mapping",
            id="a quota",
        ),
        pytest.param(
            WORKLOAD % TEMPLATE,
            'there.yaml: Job x: spec.completions: found "many"; write a whole number',
            id="a Job",
        ),
    ],
)
def test_an_object_of_a_dump_that_cannot_be_read_is_named(tmp_path: Path, there: str, told: str) -> None:
    assert told in answered(tmp_path, there, "")


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: foo\n", 'manifest.yaml: Pod: metadata: found "foo"', id="metadata"
        ),
        pytest.param(WORKLOAD % TEMPLATE, "manifest.yaml: Job x", id="completions"),
        pytest.param(
            f"{HEAD % ('LimitRange', 'default')}spec: {{limits: 7}}\n---\n{POD}",
            "manifest.yaml: LimitRange x: spec.limits: found 7",
            id="a LimitRange",
        ),
        pytest.param(
            f"{HEAD % ('ResourceQuota', 'default')}spec: [1]\n---\n{POD}",
            "manifest.yaml: ResourceQuota x: spec: found [1]",
            id="a quota",
        ),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, manifest: str, told: str) -> None:
    assert told in answered(tmp_path, "", manifest, "--replicas", "2")


def test_an_odd_object_of_a_cluster_is_ignored() -> None:
    assert _mapping("Lease", b'{"metadata": {"name": "x"}, "spec": {"leaseDurationSeconds": "abc"}}') is None
    assert _mapping("Event", b'{"metadata": {"name": "x"}, "count": null}') == {"metadata": {"name": "x"}}
