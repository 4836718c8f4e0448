"""`stowplan up`: a cluster with a scheduler in it, from start to end."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps import cli
from stowplan.apps.up.command import UpOptions, main
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import PODS, RESOURCES
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
}


async def until(ask: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(60):
        while not (found := await ask()):
            await asyncio.sleep(0.02)
        return found


async def with_cluster(wanted: UpOptions, story: Callable[[Client], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    working = asyncio.ensure_future(main(wanted, stop))

    async def written() -> bool:
        assert not working.done(), working.result()
        return wanted.kubeconfig.exists() and bool(wanted.kubeconfig.read_text(encoding="utf-8"))

    await until(written)
    client = Client(Transport(credentials.load(str(wanted.kubeconfig))))
    try:
        await story(client)
    finally:
        await client.close()
        stop.set()
        assert await working == 0


def test_a_pod_is_bound_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = UpOptions(nodes=2, zones=2, kubeconfig=tmp_path / "kubeconfig")

    async def story(client: Client) -> None:
        assert stat.S_IMODE(wanted.kubeconfig.stat().st_mode) == 0o600
        assert (await client.create(PODS, "default", POD)).status == 201

        async def running() -> Any:
            pod = json.loads((await client.get(PODS, "default/web")).body)
            return pod["status"].get("phase") == "Running" and pod["spec"]["nodeName"]

        assert await until(running) in ("node-0", "node-1")

    asyncio.run(with_cluster(wanted, story))
    assert not wanted.kubeconfig.exists(), "the kubeconfig is removed"
    assert "kubectl --kubeconfig" in capsys.readouterr().out


def test_claims_get_volumes_unless_the_cluster_is_a_copy(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: real}, status: {allocatable: {cpu: '8', pods: '9'}}}",
        encoding="utf-8",
    )
    cases: list[tuple[tuple[Path, ...], int]] = [((), 200), ((tmp_path / "dump.yaml",), 404)]
    for files, there in cases:
        wanted = UpOptions(files=files, scheduler=False, kubeconfig=tmp_path / "kubeconfig")

        async def story(client: Client, there: int = there) -> None:
            assert (await client.get(RESOURCES["StorageClass"], "standard")).status == there

        asyncio.run(with_cluster(wanted, story))


def test_a_cluster_from_files_without_a_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dump.yaml").write_text(
        "kind: List\napiVersion: v1\nitems:\n"
        "- {apiVersion: v1, kind: Node, metadata: {name: real}, status: {allocatable: {cpu: '8', pods: '9'}}}\n"
        "- {apiVersion: example.com/v1, kind: Strange, metadata: {name: x}}\n",
        encoding="utf-8",
    )
    wanted = UpOptions(nodes=0, files=(tmp_path / "dump.yaml",), scheduler=False, kubeconfig=tmp_path / "kubeconfig")

    async def story(client: Client) -> None:
        assert (await client.get(RESOURCES["Node"], "real")).status == 200

    asyncio.run(with_cluster(wanted, story))
    told = capsys.readouterr()
    assert "Loaded: 1 Node" in told.out and "1 Strange" in told.err


def test_with_rbac_the_kubeconfig_is_needed(tmp_path: Path) -> None:
    wanted = UpOptions(nodes=1, rbac=True, kubeconfig=tmp_path / "kubeconfig")

    async def story(client: Client) -> None:
        assert (await client.create(PODS, "default", POD)).status == 201

        async def running() -> Any:
            return json.loads((await client.get(PODS, "default/web")).body)["status"].get("phase") == "Running"

        await until(running)
        config = yaml.safe_load(wanted.kubeconfig.read_text(encoding="utf-8"))
        config["users"][0]["user"] = {}
        stranger = tmp_path / "stranger"
        stranger.write_text(yaml.safe_dump(config), encoding="utf-8")
        other = Client(Transport(credentials.load(str(stranger))))
        try:
            refused = await other.get(PODS, "default/web")
            assert (refused.status, b'User \\"system:anonymous\\" cannot get' in refused.body) == (403, True)
        finally:
            await other.close()

    asyncio.run(with_cluster(wanted, story))


def test_addresses_other_than_the_loopback_need_a_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="token"):
        asyncio.run(main(UpOptions(host="0.0.0.0", kubeconfig=tmp_path / "kubeconfig"), asyncio.Event()))


DUMP = """
kind: List
apiVersion: v1
items:
- {apiVersion: v1, kind: Node, metadata: {name: node-0}, status: {allocatable: {cpu: "8", pods: "9"}}}
- {apiVersion: v1, kind: Node, metadata: {name: real}, status: {allocatable: {cpu: "8", pods: "9"}}}
"""
NODES = ("real", *(f"node-{number}" for number in range(6)))
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        pytest.param(DUMP, None, {"node-0", "real"}, id="those of a dump and no others"),
        pytest.param(DUMP, 2, {"node-0", "real", "node-1", "node-2"}, id="those of a dump, and more under free names"),
        pytest.param(DUMP, 0, {"node-0", "real"}, id="none beside those of a dump"),
        pytest.param(MAP, None, {"node-0", "node-1", "node-2"}, id="three if the file has none"),
        pytest.param("", None, {"node-0", "node-1", "node-2"}, id="three if the file is empty"),
        pytest.param(MAP, 1, {"node-0"}, id="as many as are asked for"),
    ],
)
def test_the_nodes_of_a_cluster_from_a_file(tmp_path: Path, text: str, asked: int | None, expected: set[str]) -> None:
    (tmp_path / "dump.yaml").write_text(text, encoding="utf-8")
    wanted = UpOptions(nodes=asked, files=(tmp_path / "dump.yaml",), scheduler=False, kubeconfig=tmp_path / "config")

    async def story(client: Client) -> None:
        found = {name for name in NODES if (await client.get(RESOURCES["Node"], name)).status == 200}
        assert found == expected

    asyncio.run(with_cluster(wanted, story))


@pytest.mark.parametrize("amount", ["abc", "", "-1", "4 cores", "1" * 100 + "x"])
@pytest.mark.parametrize("flag", ["--cpu", "--memory"])
def test_an_amount_that_is_none_is_one_line(flag: str, amount: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.main, ["up", flag, amount, "--kubeconfig", str(tmp_path / "config")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1 and flag in result.stderr


def test_two_clusters_in_one_folder_have_a_kubeconfig_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = Path("stowplan.kubeconfig"), Path("stowplan-2.kubeconfig")

    async def story() -> None:
        stops = asyncio.Event(), asyncio.Event()
        ups = [asyncio.ensure_future(main(UpOptions(nodes=0, scheduler=False), stop)) for stop in stops]

        async def both() -> bool:
            return first.exists() and second.exists()

        await until(both)
        assert first.read_text() != second.read_text()
        with pytest.raises(ConfigError, match="belongs to a cluster that runs; give --kubeconfig another path"):
            await main(UpOptions(nodes=0, scheduler=False, kubeconfig=first.absolute()), asyncio.Event())
        for stop in stops:
            stop.set()
        assert await asyncio.gather(*ups) == [0, 0]

    asyncio.run(story())
    assert list(tmp_path.iterdir()) == []
    said = f"{first} belongs to another cluster that runs, so this one has {second}."
    assert capsys.readouterr().out.splitlines().count(said) == 1, "the second one says so"
