"""`stowplan simulate`: the commands of docs/simulation.md, the files it writes, its errors, its width."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.simulate.summary import summary_text

PAGE = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (stowplan simulate .*)$", PAGE, re.MULTILINE)
DUMP = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{number}"},
            "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "20"}},
        }
        for number in range(3)
    ],
}  # fmt: skip
AT_END = dict.fromkeys(("pending", "bound", "running", "succeeded", "failed", "evicted", "deleted"), 10**9)
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def block(kind: str, begins: str) -> str:
    """The block of the page that begins so, after its head."""
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return next(found for found in blocks if begins in found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page has, and a dump."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.yaml").write_text(json.dumps(DUMP))
    (tmp_path / "trace.csv").write_text(block("csv", "arrival"))
    (tmp_path / "cluster.yaml").write_text(block("yaml", "ClusterTemplate").replace("count: 100", "count: 5"))
    (tmp_path / "scenario.yaml").write_text(block("yaml", "kind: Scenario").replace("for: 4h", "for: 10m"))
    (tmp_path / "packed.yaml").write_text(PACKED)
    return tmp_path


def said(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command)[1:])


def test_the_page_shows_commands() -> None:
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_page_works(command: str, folder: Path) -> None:
    found = said(command)
    assert found.exit_code == 0, found.output
    assert "got a node" in found.stdout and max(map(len, found.stdout.splitlines())) <= 80


def test_the_files_of_a_run_are_written_and_its_figures_are_what_is_printed(folder: Path) -> None:
    found = said("stowplan simulate dump.yaml trace.csv --out out -o json --sample 10m")
    told = json.loads((folder / "out" / "summary.json").read_text())
    assert told == json.loads(found.stdout) and told["pods"]["placed"] == 36
    rows = [json.loads(line) for line in (folder / "out" / "pods.jsonl").read_text().splitlines()]
    assert len(rows) == 36 and {row["outcome"] for row in rows} == {"succeeded"}
    series = [json.loads(line) for line in (folder / "out" / "series.jsonl").read_text().splitlines()]
    assert [row["at"] for row in series[:3]] == [0, 600, 1200]


def test_input_that_cannot_be_used_is_refused_with_exit_code_2(folder: Path) -> None:
    (folder / "trace.csv").write_text("arrival,cpu\n-1,1\n2,x\n3,1\n")
    found = said("stowplan simulate dump.yaml trace.csv")
    assert found.exit_code == 2
    told = "stowplan: 2 entries cannot be used; correct them, or leave them out with --skip-invalid:\n  trace.csv: "
    assert found.stderr.startswith(told) and found.stderr.count("\n") == 3
    assert "trace.csv: line 2: " in found.stderr and "trace.csv: line 3: " in found.stderr


def test_what_is_skipped_is_named_on_standard_error(folder: Path) -> None:
    (folder / "trace.csv").write_text("arrival,cpu\n-1,1\n3,1\n")
    found = said("stowplan simulate dump.yaml trace.csv --skip-invalid -o json")
    assert found.exit_code == 0 and found.stderr.startswith("skipped: trace.csv: line 2: ")
    assert json.loads(found.stdout)["skipped"] == {"problems": 1}


OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nx,8000,32768,2,T4\ny,8000,32768,0,\n"
OPENB_PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "a,1000,1024,1,500,,LS,Running,0,100,0\nb,1000,1024,2,1000,T4,LS,Running,10,120,20\n"
)
SHARING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: gpu, plugins: {multiPoint: {enabled: [{name: GpuSharing}, {name: GpuBestFit}]}}}]
"""


def test_lists_of_openb_are_a_cluster_and_a_stream(folder: Path) -> None:
    """The second pod waits until the first one gives back its half of a GPU, and then runs for 100 seconds."""
    (folder / "nodes.csv").write_text(OPENB_NODES)
    (folder / "pods.csv").write_text(OPENB_PODS)
    (folder / "gpu.yaml").write_text(SHARING)
    found = said("stowplan simulate nodes.csv pods.csv --config gpu.yaml -o json")
    told = json.loads(found.stdout)
    assert (told["seconds"], told["pods"]["placed"], told["waiting"]["p100"]) == (200, 2, 90)
    assert told["allocation"]["alibabacloud.com/gpu-milli"] == (500 * 100 + 2000 * 100) / (2000 * 200)
    assert found.stderr == ""
    assert "2 pods or workloads ask for GPUs by annotations" in said("stowplan simulate nodes.csv pods.csv").stderr


def test_an_order_of_nodes_decides_ties(folder: Path) -> None:
    (folder / "one.csv").write_text("arrival,cpu,name\n0,1,first\n")
    for order in ("n-2\nn-0\nn-1\n", "n-1\nn-2\nn-0\n"):
        (folder / "order.txt").write_text(order)
        said("stowplan simulate dump.yaml one.csv --node-order order.txt --out out")
        assert json.loads((folder / "out" / "pods.jsonl").read_text())["node"] == order[:3]
    (folder / "order.txt").write_text("n-2\nn-2\n")
    found = said("stowplan simulate dump.yaml one.csv --node-order order.txt")
    assert found.exit_code == 2 and "order.txt: line 2: 'n-2' is in line 1, too" in found.stderr


def test_a_long_run_has_fewer_samples(folder: Path) -> None:
    (folder / "trace.csv").write_text("arrival,duration,cpu\n0,10,1\n140d,10,1\n")
    said("stowplan simulate dump.yaml trace.csv --out out")
    rows = [json.loads(line) for line in (folder / "out" / "series.jsonl").read_text().splitlines()]
    assert [row["at"] for row in rows[:2]] == [0, 21 * 60] and len(rows) == 9601


def test_two_streams_may_make_up_the_same_names(folder: Path) -> None:
    (folder / "trace.csv").write_text("arrival,cpu,count\n0,1,2\n")
    (folder / "again.csv").write_text("arrival,cpu,count\n0,1,2\n")
    found = said("stowplan simulate dump.yaml trace.csv again.csv -o json")
    assert json.loads(found.stdout)["pods"]["placed"] == 4


def test_compressed_files_are_read_also_in_a_folder(folder: Path) -> None:
    (folder / "cluster").mkdir()
    (folder / "cluster" / "dump.json.gz").write_bytes(gzip.compress(json.dumps(DUMP).encode()))
    spec = {"containers": [{"name": "a", "image": "b"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "small"}, "spec": spec}
    (folder / "small.json.gz").write_bytes(gzip.compress(json.dumps(pod).encode()))
    (folder / "trace.csv").write_text("arrival,template\n0,small\n")
    found = said("stowplan simulate cluster trace.csv --templates small.json.gz -o json")
    assert json.loads(found.stdout)["pods"]["placed"] == 1


EXPORT = {"nodes": DUMP["items"], "pods": [], "schedulerConfig": {"kind": "KubeSchedulerConfiguration"}, "pvs": None}


def test_what_is_not_used_is_told(folder: Path) -> None:
    (folder / "export.json").write_text(json.dumps(EXPORT))
    (folder / "secret.yaml").write_text("{apiVersion: v1, kind: Secret, metadata: {name: s}}")
    found = said("stowplan simulate export.json trace.csv --templates secret.yaml")
    assert found.exit_code == 0
    assert found.stderr.splitlines() == [
        "not used, of kinds that are not served: 1 schedulerConfig",
        "not used, as no templates of pods: 1 Secret",
    ]


def test_a_cluster_without_objects_is_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "empty" / "readme.txt").write_text("nothing")
    found = said("stowplan simulate empty trace.csv")
    assert found.exit_code == 2 and found.stderr.startswith("stowplan: empty: has no objects")


@pytest.mark.parametrize("metadata", ["annotations: .inf", "labels: [a]"])
@pytest.mark.parametrize("head", ["kind: Pod, spec: {containers: []}", "kind: PodTemplate, template: {spec: {}}"])
def test_a_template_with_metadata_that_make_no_sense_is_refused(folder: Path, head: str, metadata: str) -> None:
    (folder / "t.yaml").write_text(f"{{{head}, apiVersion: v1, metadata: {{name: small, {metadata}}}}}")
    (folder / "trace.csv").write_text("arrival,template,owner\n0,small,al\n")
    found = said("stowplan simulate dump.yaml trace.csv --templates t.yaml")
    assert found.exit_code == 2 and f"small: metadata.{metadata.partition(':')[0]} is " in found.stderr


def test_a_template_whose_version_is_no_text_is_refused(folder: Path) -> None:
    spec = "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}"
    (folder / "t.yaml").write_text(f"{{kind: Deployment, apiVersion: 1.5, metadata: {{name: web}}, spec: {spec}}}")
    (folder / "trace.csv").write_text("arrival,template\n0,web\n")
    found = said("stowplan simulate dump.yaml trace.csv --templates t.yaml")
    assert found.exit_code == 2 and "trace.csv: line 2: Deployment of 1.5 is not served" in found.stderr


SPECS = ["{}", "{containers: []}", "{containers: [x]}", "{containers: [{name: a, image: b, resources: [1]}]}"]


@pytest.mark.parametrize("spec", SPECS)
def test_requests_for_a_template_without_a_right_container_are_refused(folder: Path, spec: str) -> None:
    (folder / "t.yaml").write_text(f"{{kind: Pod, apiVersion: v1, metadata: {{name: small}}, spec: {spec}}}")
    (folder / "trace.csv").write_text("arrival,template,cpu\n0,small,1\n")
    found = said("stowplan simulate dump.yaml trace.csv --templates t.yaml")
    assert found.exit_code == 2 and found.stderr.startswith("stowplan: trace.csv: line 2: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("m5,-1\n", "line 1: found 'm5,-1'", id="a negative price"),
        pytest.param("m5,1\nm6,nan\n", "line 2: found 'm6,nan'", id="not a number"),
        pytest.param("m5,1\nm5,2\n", "line 2: 'm5' has a price already", id="two prices"),
        pytest.param("m5,1\n\udcff,2\n", "line 2: not UTF-8", id="no text"),
    ],
)
def test_a_table_of_prices_that_makes_no_sense_is_refused(folder: Path, text: str, problem: str) -> None:
    (folder / "prices.csv").write_bytes(text.encode(errors="surrogateescape"))
    found = said("stowplan simulate dump.yaml trace.csv --prices prices.csv")
    assert found.exit_code == 2 and f"prices.csv: {problem}" in found.stderr


def test_the_summary_is_within_80_columns_whatever_the_names_are() -> None:
    long = "x" * 253
    namespaces = {f"{long}{number}": {"pods": 10**8, "satisfaction": 0.5, "meanWait": 1e9} for number in range(30)}
    told = {
        "seconds": 1e9, "seed": 2**63, "evictions": {"pods": 10**9, "byReason": {long: 10**9}},
        "pods": {"arrived": 10**9, "placed": 10**9, "neverPlaced": 10**9, "initial": 10**9, "atEnd": AT_END},
        "waiting": {"mean": 1e9, **{f"p{each}": 1e9 for each in (50, 90, 95, 99, 100)}},
        "nodes": {"atEnd": 10**6, "mostUsed": 10**6, "meanUsed": 1e6},
        "cost": {"all": 1e9, "used": 1e9, "nodesWithoutPrice": 10**6},
        "allocation": {long: 1.0}, "utilisation": {long: 1.0}, "fragmentation": {},
        "fairness": {"index": 0.5, "namespaces": namespaces},
    }  # fmt: skip
    assert max(map(len, summary_text(told).splitlines())) <= 80
