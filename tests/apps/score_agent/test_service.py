"""The rounds of an agent with an embedded hub: changes of the hub, sources that fail, clusters that do not answer."""

from __future__ import annotations

import asyncio
import io
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stowplan.apps.logging import Log
from stowplan.apps.program import Program
from stowplan.apps.score_agent.metrics import ScoreAgentMetrics
from stowplan.apps.score_agent.service import ScoreAgentOptions, ScoreAgentService
from stowplan.apps.score_agent.sources import Measurements, OwnCluster, Source, Static
from stowplan.apps.up.command import create, node
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.kube.resources import RESOURCES
from stowplan.objects.clusters import ManagedCluster
from stowplan.objects.errors import ConfigError
from stowplan.scores.demand import Demand
from stowplan.scores.http_source import AnswerError
from stowplan.scores.publication import Validity
from stowplan.scores.usage import CORES, default_measures
from tests.controlplane.flags import free_port

GROUP = "cluster.open-cluster-management.io"


class Scripted:
    """A source with a script: each round an error, or a value for each cluster; the last entry is repeated."""

    def __init__(self, *script: Exception | float) -> None:
        self._script, self.rounds = list(script), 0

    def open(self, _program: Program) -> None: ...

    async def read(self, clusters: Mapping[str, ManagedCluster], _wanted: Demand) -> Measurements:
        line = self._script[min(self.rounds, len(self._script) - 1)]
        self.rounds += 1
        if isinstance(line, Exception):
            raise line
        return Measurements({"s": dict.fromkeys(clusters, line)})


def manage(hub: Embedded, *names: str) -> None:
    for name in names:
        create(hub, "v1", "Namespace", {"metadata": {"name": name}})
        create(hub, f"{GROUP}/v1", "ManagedCluster", {"metadata": {"name": name}, "spec": {}})


def stored(hub: Embedded, name: str) -> dict[str, Any]:
    return hub.api.store.get(f"addonplacementscores.{GROUP}", f"{name}/default") or {}


def scores(hub: Embedded, name: str) -> dict[str, int]:
    return {each["name"]: each["value"] for each in stored(hub, name).get("status", {}).get("scores", ())}


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def agent(kubeconfig: Path, source: Source, **options: Any) -> AsyncIterator[io.StringIO]:
    """Run an agent for the block; its log."""
    said = io.StringIO()
    program = ScoreAgentService(
        ScoreAgentOptions({}, hub_kubeconfig=str(kubeconfig), **options), source, Log(2, stream=said)
    )
    working = asyncio.ensure_future(program.main())
    try:
        yield said
    finally:
        program.stop()
        async with asyncio.timeout(60):
            assert await working == 0


def written(folder: Path, cluster: Embedded) -> Path:
    file = folder / f"{id(cluster)}.kubeconfig"
    file.write_text(cluster.kubeconfig())
    return file


def test_a_new_cluster_is_scored_at_once(tmp_path: Path) -> None:
    """The interval is an hour."""

    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            async with agent(written(tmp_path, hub), Scripted(5), interval=3600.0):
                await until(lambda: scores(hub, "east") == {"s": 5})
                manage(hub, "west")
                await until(lambda: scores(hub, "west") == {"s": 5})

    asyncio.run(story())


def test_a_source_that_fails_is_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            source = Scripted(5, AnswerError("gone fishing"), 7)
            async with agent(written(tmp_path, hub), source, interval=0.05) as said:
                await until(lambda: scores(hub, "east") == {"s": 7})
            assert '"No values in this round" problem="gone fishing"' in said.getvalue()

    asyncio.run(story())


def test_unchanged_scores_are_not_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            source = Scripted(5)
            async with agent(written(tmp_path, hub), source, interval=0.02):
                await until(lambda: scores(hub, "east") == {"s": 5})
                version = stored(hub, "east")["metadata"]["resourceVersion"]
                seen = source.rounds
                await until(lambda: source.rounds > seen + 5)
                assert stored(hub, "east")["metadata"]["resourceVersion"] == version

    asyncio.run(story())


def test_scores_of_a_cluster_that_does_not_answer_are_not_refreshed(tmp_path: Path) -> None:
    """Scores are written each second while the cluster answers; afterwards they expire."""

    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            own = Embedded(with_controllers=False)
            await own.start()
            create(own, "v1", "Node", node("a", "zone", cpu="50", memory="100G"))
            source = OwnCluster("east", default_measures(), str(written(tmp_path, own)))
            told = {"interval": 0.05, "validity": Validity(3.0, 1.9, 0.0), "normaliser": CORES}
            async with agent(written(tmp_path, hub), source, **told) as said:
                await until(lambda: len(scores(hub, "east")) == 4)
                first = stored(hub, "east")["status"]["validUntil"]
                await until(lambda: stored(hub, "east")["status"]["validUntil"] > first)
                await own.stop()
                await until(lambda: "No values in this round" in said.getvalue())
                last, said_then = stored(hub, "east"), said.getvalue().count("No values")
                await until(lambda: said.getvalue().count("No values") > said_then + 3)
                assert stored(hub, "east") == last

    asyncio.run(story())


def test_it_stops_although_the_hub_does_not_answer(tmp_path: Path) -> None:
    async def story() -> None:
        hub = Embedded(with_controllers=False)
        await hub.start()
        file = written(tmp_path, hub)
        await hub.stop()
        async with agent(file, Scripted(5)) as said:
            await until(lambda: '"Cannot follow" where="the hub"' in said.getvalue())

    asyncio.run(story())


def test_a_hub_without_the_definitions(tmp_path: Path) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as cluster:
            definitions = cluster.api.catalogue.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
            assert definitions is not None
            cluster.api.delete(definitions, "", f"managedclusters.{GROUP}", DeleteOptions(), RequestOptions(0.0))
            options = ScoreAgentOptions({}, hub_kubeconfig=str(written(tmp_path, cluster)), once=True)
            with pytest.raises(ConfigError, match="the hub has no ManagedCluster; name the hub"):
                await ScoreAgentService(options, Scripted(5), Log(stream=io.StringIO())).main()

    asyncio.run(story())


# -- clusters that do not exist


@pytest.mark.parametrize("once", [True, False])
def test_a_named_cluster_that_does_not_exist_is_an_error(tmp_path: Path, once: bool) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            source, said = Static("s", {"east": 5, "nowhere": 7}), io.StringIO()
            options = ScoreAgentOptions({}, hub_kubeconfig=str(written(tmp_path, hub)), interval=0.05, once=once)
            program = ScoreAgentService(options, source, Log(stream=said))
            working = asyncio.ensure_future(program.main())
            await until(lambda: scores(hub, "east") == {"s": 5} and "nowhere" in said.getvalue())
            if not once:
                await until(lambda: program.problem.startswith("1 clusters or values failed in the last round"))
                manage(hub, "nowhere")
                await until(lambda: scores(hub, "nowhere") == {"s": 7} and not program.problem)
                program.stop()
            assert await working == int(once)
            assert "The hub has no ManagedCluster of that name" in said.getvalue()

    asyncio.run(story())


def test_values_of_foreign_clusters_are_told_once(tmp_path: Path) -> None:
    """A query may know more clusters than the hub."""

    class Foreign(Scripted):
        async def read(self, clusters: Mapping[str, ManagedCluster], wanted: Demand) -> Measurements:
            found = await super().read(clusters, wanted)
            found.values["s"]["elsewhere"] = 1.0
            return found

    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            source = Foreign(5)
            async with agent(written(tmp_path, hub), source, interval=0.02) as said:
                await until(lambda: source.rounds > 5)
            assert said.getvalue().count("The hub has no ManagedCluster of that name") == 1

    asyncio.run(story())


def test_usage_of_a_cluster_that_does_not_exist(tmp_path: Path) -> None:
    """Its namespace may be there all the same."""

    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            file = str(written(tmp_path, hub))
            options = ScoreAgentOptions({}, hub_kubeconfig=file, once=True)
            source = OwnCluster("default", default_measures(), file)
            program = ScoreAgentService(options, source, Log(stream=io.StringIO()))
            with pytest.raises(ConfigError, match="the hub has no ManagedCluster default; register the cluster, or"):
                await program.main()
            assert stored(hub, "default") == {}

    asyncio.run(story())


# -- pages


def test_pages(tmp_path: Path) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            manage(hub, "east")
            port, source = free_port(), Scripted(AnswerError("gone fishing"), 5, 7)
            async with agent(written(tmp_path, hub), source, interval=2.0, plain_port=port):
                problem = "[-]scores failed: no values in the last round: gone fishing"
                await until(lambda: problem in page(port, "/readyz")[1])
                assert page(port, "/livez") == page(port, "/healthz") == (200, "ok")
                await until(lambda: page(port, "/readyz") == (200, "ok"))
                text = page(port, "/metrics")[1]
                assert 'stowplan_scores_rounds_total{result="failed"} 1.0' in text
                assert 'stowplan_scores_score{cluster="east",score="s"}' in text
                assert 'stowplan_scores_objects_total{outcome="written"}' in text
                assert "stowplan_scores_last_success_timestamp_seconds 1." in text
                assert "stowplan_scores_round_duration_seconds_count" in text

    asyncio.run(story())


@pytest.mark.parametrize(
    ("measures_itself", "asks"),
    [pytest.param(True, "own", id="in a cluster"), pytest.param(False, "hub", id="on the hub")],
)
def test_clients_of_the_pages_are_known_where_the_agent_runs(tmp_path: Path, measures_itself: bool, asks: str) -> None:
    """Its token for the hub may do nothing there but write scores."""

    async def story() -> None:
        async with Embedded(with_controllers=False) as hub, Embedded(with_controllers=False) as own:
            create(own, "v1", "Node", node("a", "zone", cpu="50", memory="100G"))
            manage(hub, "east")
            source: Source = OwnCluster("east", default_measures(), str(written(tmp_path, own)))
            options = ScoreAgentOptions({}, hub_kubeconfig=str(written(tmp_path, hub)))
            program = ScoreAgentService(options, source if measures_itself else Scripted(5), Log(stream=io.StringIO()))
            client = program.reviewer("")
            namespaces = [page async for page in client.list_pages(RESOURCES["Namespace"])]
            names = {msgspec.json.decode(item)["metadata"]["name"] for item in namespaces[0].items or ()}
            await client.close()
            assert ("east" in names) == (asks == "hub")

    asyncio.run(story())


def page(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()
    except OSError as error:
        return 0, str(error)


def test_a_token_in_the_kubeconfig_itself_cannot_be_renewed(tmp_path: Path) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            options = ScoreAgentOptions({}, hub_kubeconfig=str(written(tmp_path, hub)), hub_token_lifetime=3600.0)
            with pytest.raises(ConfigError, match="--hub-token-lifetime: found no tokenFile for the hub; put"):
                await ScoreAgentService(options, Scripted(5), Log(stream=io.StringIO())).main()

    asyncio.run(story())


def test_the_token_of_a_pod_is_the_kubelets_affair(tmp_path: Path) -> None:
    async def story() -> None:
        async with Embedded(with_controllers=False) as hub:
            config = yaml.safe_load(hub.kubeconfig())
            config["users"][0]["user"] = {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}
            (tmp_path / "kubeconfig").write_text(json.dumps(config))
            file = str(tmp_path / "kubeconfig")
            options = ScoreAgentOptions({}, hub_kubeconfig=file, hub_token_lifetime=3600.0)
            with pytest.raises(ConfigError, match="found the token of a pod, which the kubelet renews; leave this"):
                await ScoreAgentService(options, Scripted(5), Log(stream=io.StringIO())).main()

    asyncio.run(story())


def test_scores_that_are_gone_are_not_shown() -> None:
    metrics = ScoreAgentMetrics()
    metrics.show({"east": {"a": 1, "b": 2}, "west": {"a": 3}})
    metrics.show({"east": {"a": 4}})
    lines = [line for line in metrics.text("")[0].decode().splitlines() if line.startswith("stowplan_scores_score{")]
    assert lines == ['stowplan_scores_score{cluster="east",score="a"} 4.0']
