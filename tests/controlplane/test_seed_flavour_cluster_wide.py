"""FlavourClusterWide from its seed's own files, unedited, as OpenShift's operator would run it.

The test plays the operator: its namespace and account, its kind of resource (a stub), and a scheduler with what the
ConfigMap in the cluster says, as verbose as the resource says. On the real control plane the account has the rights of
deploy/openshift/rbac.yaml alone.
"""

from __future__ import annotations

import gzip
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import EVERYWHERE
from tests.controlplane.deployed import check_no_limit_met
from tests.controlplane.flavours import (
    ACCOUNT,
    CONFIG_MAP,
    FLAVOURS,
    NAMESPACE,
    SEEDS,
    WORKER,
    documents,
    granted,
    landed,
    mount,
    operator,
)
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, stowplan


class Operated(NamedTuple):
    """A cluster, the scheduler in it, and the file that has its configuration."""

    cluster: Cluster
    program: Stowplan
    file: Path


VERBOSITY = {"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 8}  # by the operator
PROFILE = "/debug/pprof/profile?seconds=1"


def resource(cluster: Cluster) -> Any:
    """The spec of the seed's SecondaryScheduler, as it is in the cluster."""
    path = f"/apis/operator.openshift.io/v1/namespaces/{NAMESPACE}/secondaryschedulers/cluster"
    return cluster.api().must("GET", path)["spec"]


@pytest.fixture(scope="module", params=EVERYWHERE)
def operated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    cluster: Cluster = request.getfixturevalue(request.param)
    file = tmp_path_factory.mktemp("seed") / "config.yaml"
    with ExitStack() as stack:
        stack.enter_context(operator(cluster))
        for each in ("secondaryScheduler.yaml", "config.yaml"):
            cluster.kubectl("apply", "--filename", str(SEEDS / each))
        mount(cluster, file)
        kubeconfig = cluster.kubeconfig()
        if request.param != "embedded":  # which knows no rights
            stack.enter_context(granted(cluster))
            kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        verbosity = f"-v={VERBOSITY[resource(cluster)['logLevel']]}"
        started = stowplan(cluster, "seed-flavour", "--config", str(file), verbosity, kubeconfig=kubeconfig)
        program = stack.enter_context(started)
        program.wait_until_leading()
        yield Operated(cluster, program, file)
        program.stop(grace=60)
        assert program.code == 0, program.tail()
        check_no_limit_met(program.log)


def test_gold_silver_and_bronze_in_three_namespaces_end_at_one_of_each_per_worker(operated: Operated) -> None:
    cluster, program = operated.cluster, operated.program
    with ExitStack() as stack:
        workers = stack.enter_context(cluster.nodes(3, prefix="worker", labels=WORKER))
        stack.enter_context(cluster.nodes(1, prefix="infra"))
        for flavour, document in documents().items():
            assert f"flavour: {flavour}" in document
            namespace = stack.enter_context(cluster.namespace(flavour))
            cluster.kubectl("apply", "--namespace", namespace, "--filename=-", input=document)
        until("nine pods are bound", lambda: landed(cluster).total() == 9, 120, program.explain)
        expected = {(flavour, node): 1 for flavour in FLAVOURS for node in workers}
        assert landed(cluster) == expected, "and no pod is on the node that is no worker"

        def figures() -> tuple[Any, Any]:
            return (
                program.metric("stowplan_flavour_pods", label="flavour"),
                program.metric("stowplan_flavour_skew"),
            )

        until("the figures say so", lambda: figures() == (9, 0), 60, lambda: program.page("/metrics"))
        check_trace(program.log.read_text(encoding="utf-8"), workers)


def check_trace(log: str, workers: list[str]) -> None:
    """With `logLevel: TraceAll`, as in the seed, the log has each node's verdict and scores, and the trail."""
    pod = r'pod="gold-\d+/gold-workload-[^"]+"'
    assert re.search(rf'"Decided about pod" {pod} node="worker-\d" evaluatedNodes=4 feasibleNodes=4', log)
    for node in (*workers, "infra-0"):
        assert re.search(rf'"Node is feasible" {pod} node="{node}"', log), node
        assert re.search(rf'"Node is scored" {pod} node="{node}" .*FlavourClusterWide (0|100)\*1', log), node
    assert re.search(rf'"Trail of the decision" {pod} trail="', log)


def test_profiling_is_off_as_the_seed_says_until_it_is_switched_on(operated: Operated) -> None:
    cluster, program, file = operated.cluster, operated.program, operated.file
    with pytest.raises(urllib.error.HTTPError, match="404"):
        program.page(PROFILE)
    file.write_text(file.read_text(encoding="utf-8").replace("enableProfiling: false", "enableProfiling: true", 1))
    try:
        until("there is a profile", lambda: is_served(program), 60, program.explain)
        until("it shows the program at work", lambda: b"stowplan.apps" in profile(program), 60)
    finally:
        mount(cluster, file)
        until("it is off again", lambda: not is_served(program), 60, program.explain)


def is_served(program: Stowplan) -> bool:
    try:
        return bool(profile(program))
    except urllib.error.HTTPError:
        return False


def profile(program: Stowplan) -> bytes:
    """The profile, without its compression: function names can be read in it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{program.port}{PROFILE}", timeout=30) as answer:
        return gzip.decompress(answer.read())


def test_the_seeds_other_configuration_goes_by_the_label_tier(operated: Operated) -> None:
    """It is applied over the first one, and in force without a restart."""
    cluster, program = operated.cluster, operated.program
    spec = {"schedulerName": "secondary-scheduler", "containers": [{"name": "app", "image": "nginx:latest"}]}

    def in_force() -> int:
        return program.log.read_text(encoding="utf-8").count("The configuration is in force")

    before = in_force()
    cluster.kubectl("apply", "--filename", str(SEEDS / "config-custom-label.yaml"))
    mount(cluster, operated.file)
    try:
        until("it is in force", lambda: in_force() > before, 60, program.explain)
        with cluster.nodes(3, prefix="worker", labels=WORKER) as workers, cluster.namespace("tier") as namespace:
            for number in range(6):
                metadata = {"name": f"front-{number}", "labels": {"tier": "front"}}
                body = {"metadata": metadata, "spec": spec}
                cluster.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", body)
            until("six pods are bound", lambda: landed(cluster, "tier").total() == 6, 120, program.explain)
            assert landed(cluster, "tier") == {("front", node): 2 for node in workers}
    finally:
        cluster.kubectl("apply", "--filename", str(SEEDS / "config.yaml"))
        mount(cluster, operated.file)


def test_the_seeds_resource_is_there_as_it_stands(operated: Operated) -> None:
    spec = resource(operated.cluster)
    assert (spec["schedulerConfig"], spec["managementState"]) == (CONFIG_MAP, "Managed")
