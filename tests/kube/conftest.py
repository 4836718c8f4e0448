"""Coroutines as tests, each in an event loop of its own, on asyncio's loop; none may take longer than a minute."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterator

import pytest

from tests.controlplane import build
from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import EVERYWHERE
from tests.controlplane.fixtures import kubectl, teller
from tests.controlplane.plane import ControlPlane
from tests.embedded.running import EmbeddedCluster, served
from tests.kube.certificates import Authority
from tests.started_planes import note_start


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(_within(test, 180))
    return True


async def _within(test: Awaitable[None], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await test


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def plane(authority: Authority, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A real API server without controllers that also accepts certificates of `authority`."""
    try:
        build.programs(build.MAIN, teller(request.config))
    except build.CannotBuildError as reason:
        pytest.skip(f"no control plane of Kubernetes {build.MAIN}: {reason}")
    flags = [f"--client-ca-file={authority.ca}"]
    with ControlPlane(controller_manager=False, kwok=False, pod_groups=True, apiserver_flags=flags) as plane:
        note_start(request.config, build.MAIN)
        yield plane


@pytest.fixture(scope="session")
def embedded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """The embedded cluster without controllers."""
    with served(with_controllers=False) as found:
        folder = tmp_path_factory.mktemp("embedded")
        yield EmbeddedCluster(found, kubectl(request.config), folder, has_controllers=False)


@pytest.fixture(params=EVERYWHERE)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Both."""
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace of the test's `cluster`, or else of `plane`, in which pods may be made."""
    cluster: Cluster = request.getfixturevalue("cluster" if "cluster" in request.fixturenames else "plane")
    with cluster.namespace() as name:
        cluster.api().must("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        yield name
    cluster.check()
