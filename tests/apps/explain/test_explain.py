"""`stowplan explain` on dumps: tables, JSON and YAML with the decisions of the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from stowplan.apps import cluster_objects
from stowplan.apps.cli import main
from stowplan.objects import yaml_text
from stowplan.objects.meta import Object, OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.taints import Toleration
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World

NODES = [a_node("a", cpu=4), a_node("b", cpu=2), a_node("c", cpu=8, taints=["t=v:NoSchedule"])]
BUSY = [a_pod("on-a", cpu="3800m", node="a"), a_pod("on-b", cpu="1500m", node="b")]

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{%s}]
"""
EXTENDERS = "extenders: [{urlPrefix: 'http://127.0.0.1:1/scheduler', filterVerb: filter}]"


def dump(folder: Path, *objects: Object) -> str:
    """Write a List, as `kubectl get -o yaml` does."""
    items = [
        msgspec.to_builtins(each, enc_hook=str) | {"kind": type(each).__name__, "apiVersion": "v1"} for each in objects
    ]
    file = folder / "dump.yaml"
    file.write_text(yaml_text.dump({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(file)


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def test_a_pending_pod_has_its_causes_and_the_message_of_its_event(tmp_path: Path) -> None:
    pod = a_pod("web", cpu="1")
    world = World(nodes=NODES)
    world.submit(*BUSY, pod)
    world.run()
    answer = explain("web", "--from", dump(tmp_path, *NODES, *BUSY, pod))
    assert answer.exit_code == 1
    text = " ".join(answer.output.split())
    assert " ".join(world.event_notes("web")[0].split()) in text
    assert "a, b: insufficient cpu: the pod wants 1, at most 500m of 4 is free" in text
    assert "c: taint t=v:NoSchedule" in text


def test_a_pod_that_fits_has_scores_and_the_margin_of_the_best_node(tmp_path: Path) -> None:
    answer = explain("web", "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1")))
    assert answer.exit_code == 0, answer.output
    assert "default/web would be scheduled to a" in answer.output and "best score, by " in answer.output
    assert "TaintToleration" in answer.output and "untolerated taint" in " ".join(answer.output.split())


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_json_and_yaml_have_a_version(tmp_path: Path, form: str) -> None:
    answer = explain("web", "-o", form, "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1", node="b")))
    found: Any = json.loads(answer.output) if form == "json" else yaml.safe_load(answer.output)
    assert (found["apiVersion"], found["kind"]) == ("stowplan.io/v1alpha1", "Decision")
    assert (found["node"], found["boundTo"]) == ("a", "b")
    assert set(found["scores"]) == {"a", "b"} and set(found["rejected"]) == {"c"}
    total = sum(found["weights"][name] * score for name, score in found["scores"]["a"]["plugins"].items())
    assert total == found["scores"]["a"]["total"]


def test_brackets_in_reasons_are_not_markup(tmp_path: Path) -> None:
    gated = a_pod("web", schedulingGates=[{"name": "quota"}, {"name": "bold"}])
    answer = explain("web", "--from", dump(tmp_path, *NODES, gated))
    assert "waiting for scheduling gates: [quota bold]" in " ".join(answer.output.split())


def test_unknown_kinds_are_ignored_and_errors_are_located(tmp_path: Path) -> None:
    (tmp_path / "others.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", encoding="utf-8")
    dump(tmp_path, *NODES, a_pod("web", cpu="1"))
    assert explain("web", "--from", str(tmp_path)).exit_code == 0
    answer = explain("nobody", "--from", str(tmp_path))
    assert answer.exit_code == 2 and 'pod "nobody" not found in namespace default' in answer.output
    (tmp_path / "bad.yaml").write_text("kind: Node\nmetadata: {name: [1]}\n", encoding="utf-8")
    answer = explain("web", "--from", str(tmp_path))
    assert answer.exit_code == 2 and "bad.yaml" in answer.output and "Traceback" not in answer.output


def test_version() -> None:
    assert CliRunner().invoke(main, ["version"]).output.startswith("stowplan 0.")


def test_without_a_pod_each_pending_pod_is_explained(tmp_path: Path) -> None:
    there = [*NODES, *BUSY, a_pod("small", cpu="100m"), a_pod("large", cpu="3"), a_pod("other", namespace="far", cpu=9)]
    files = ("--from", dump(tmp_path, *there))
    text = " ".join(explain(*files).output.split())
    assert "│ small │" in text and "│ large │" in text and "far" not in text and "│ on-a │" not in text
    answer = explain("-A", "-o", "json", *files)
    found = json.loads(answer.output)
    assert (answer.exit_code, found["kind"]) == (1, "DecisionList")
    assert {each["pod"]: each["node"] for each in found["items"]} == {
        "default/small": "b",
        "default/large": None,
        "far/other": None,
    }
    told = "No pod is pending in namespace nowhere; -A looks in all namespaces.\n"
    assert explain("-n", "nowhere", *files).output == told
    assert explain("web", "-A", *files).exit_code == 2


def test_pods_that_are_alike_are_one_row(tmp_path: Path) -> None:
    many = [a_pod(f"many-{number}", cpu="9", labels={"app": "x"}) for number in range(7)]
    other = a_pod("other", cpu="9", labels={"app": "y"})
    answer = explain("--from", dump(tmp_path, *NODES, *many, other))
    assert "many-0 and 6 alike" in " ".join(answer.output.split()) and "many-3" not in answer.output
    assert answer.output.startswith("8 of 8 pending pods would get no node, judged in queue order.")
    found = json.loads(explain("-l", "app=x", "-o", "json", "--from", dump(tmp_path, *NODES, *many, other)).stdout)
    assert [each["pod"] for each in found["items"]] == [pod.key for pod in many]
    assert len({each["uid"] for each in found["items"]}) == 7


@pytest.mark.parametrize("selector", ["app in (", "a=b=c", "!"])
def test_a_wrong_selector_is_refused(tmp_path: Path, selector: str) -> None:
    answer = explain("-l", selector, "--from", dump(tmp_path, *NODES))
    assert answer.exit_code == 2 and "Traceback" not in answer.output and "-l: " in answer.output


def test_a_pod_can_be_named_as_in_kubectl(tmp_path: Path) -> None:
    answer = explain("pod/web", "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1")))
    assert "default/web would be scheduled to a" in answer.output


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param(
            "deploy/other", 'deployment "other" not found in namespace default; check its name', id="no such workload"
        ),
        pytest.param("deploy/web", "did you mean pod/web?", id="a pod of this name"),
        pytest.param("wbe", 'pod "wbe" not found in namespace default; did you mean web?', id="a misspelt pod"),
        pytest.param("deplyo/web", "'deplyo/web' is neither a pod nor a workload; did you mean deploy/web?", id="kind"),
        pytest.param("deploy/cahce", "did you mean deploy/cache?", id="a misspelt workload"),
        pytest.param("cache", "did you mean deploy/cache?", id="a workload of this name"),
        pytest.param("web-7f", "did you mean web-7f-x?", id="the beginning of a name"),
        pytest.param("away", "there is one in namespace far: name it with -n", id="in another namespace"),
        pytest.param("default/web", "'default/web' is neither a pod nor a workload; name a pod, or", id="no kind"),
        pytest.param("cm/web", "'cm/web' is neither a pod nor a workload", id="a kind without pods"),
        pytest.param("pod/", "'pod/' is neither a pod nor a workload", id="no name"),
    ],
)
def test_other_names_are_refused(tmp_path: Path, name: str, says: str) -> None:
    cache = a_pod("cache-5b-z", labels={"pod-template-hash": "5b"})
    owner = OwnerReference("ReplicaSet", "cache-5b", "u", "apps/v1", controller=True)
    cache = msgspec.structs.replace(cache, metadata=msgspec.structs.replace(cache.metadata, owner_references=(owner,)))
    there = [a_pod("web", cpu="1"), a_pod("web-7f-x"), cache, a_pod("away", namespace="far")]
    answer = explain(name, "--from", dump(tmp_path, *NODES, *there))
    assert answer.exit_code == 2 and says in answer.output


def test_pods_without_a_uid_are_distinct(tmp_path: Path) -> None:
    """Each takes its own room."""
    pods = [by_hand(a_pod(f"p{number}", cpu="1", node="a")) for number in range(4)]
    answer = explain("web", "--from", dump(tmp_path, a_node("a", cpu=4), *pods, by_hand(a_pod("web", cpu="1"))))
    assert answer.exit_code == 1 and "Insufficient cpu" in answer.output


def by_hand(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=""))


# -- whose pod it is, and who has a say


@pytest.mark.parametrize("name", ["default-scheduler", "stowplan"])
def test_without_a_configuration_these_schedulers_have_a_profile(tmp_path: Path, name: str) -> None:
    answer = explain("web", "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1", schedulerName=name)))
    assert answer.exit_code == 0 and "default/web would be scheduled to a" in answer.output


def test_a_pod_that_nobody_serves_is_told_which_scheduler_name_would_help(tmp_path: Path) -> None:
    answer = explain("web", "-o", "json", "--from", dump(tmp_path, *NODES, a_pod("web", cpu="1", schedulerName="foo")))
    found = json.loads(answer.stdout)
    assert (answer.exit_code, found["node"], found["message"]) == (1, None, "nobody serves foo")
    assert found["podCauses"][0]["code"] == "scheduler" and found["scheduler"]["state"] == "nobody"
    (remedy,) = found["remedies"]
    assert (remedy["code"], remedy["node"]) == ("scheduler-name", "a")
    patch = {"op": "replace", "path": "/spec/schedulerName", "value": "default-scheduler"}
    assert remedy["changes"][0]["patch"] == [patch]


def test_a_pod_of_a_scheduler_at_work_is_judged_with_the_default_profile(tmp_path: Path) -> None:
    theirs = a_pod("theirs", cpu="1", node="a", schedulerName="kosmos-scheduler")
    there = [*NODES, theirs, a_pod("web", cpu="1", schedulerName="kosmos-scheduler"), a_pod("ours", cpu="1")]
    file = dump(tmp_path, *there)
    answer = explain("web", "ours", "--from", file)
    assert answer.exit_code == 0, answer.output
    said = "kosmos-scheduler is at work, and its profile is not known: judged with that of default-scheduler"
    text = " ".join(answer.output.split())
    assert said in text and "default/web would be scheduled" in text and "default/ours would be scheduled" in text
    found = json.loads(explain("web", "-o", "json", "--from", file).stdout)
    assert found["scheduler"]["assumedProfile"] == "default-scheduler"
    config = tmp_path / "config"
    config.write_text(CONFIG % "schedulerName: kosmos-scheduler", encoding="utf-8")
    known = json.loads(explain("web", "-o", "json", "--from", file, "--config", str(config)).stdout)
    assert known["scheduler"]["assumedProfile"] == ""


def test_a_scheduler_with_a_live_lease_is_named(tmp_path: Path) -> None:
    spec = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {"kind": "Lease", "metadata": {"name": "other", "namespace": "kube-system"}, "spec": spec}
    (tmp_path / "lease.json").write_text(json.dumps(lease), encoding="utf-8")
    large = [a_pod(f"web-{at}", cpu="9", schedulerName="other", labels={"app": "web"}) for at in range(2)]
    files = ("--from", dump(tmp_path, *NODES, *large), "--from", str(tmp_path / "lease.json"))
    answer = explain("web-0", *files)
    assert answer.exit_code == 1 and "other serves other (x), and its profile is not known" in answer.output
    remedies = json.loads(explain("-A", "-o", "json", *files).stdout)["items"][0]["remedies"]
    assert any(each["helps"] == each["triedFor"] == 2 for each in remedies), "tried with the profile that is assumed"


def test_pods_of_other_schedulers_are_listed_after_ours(tmp_path: Path) -> None:
    theirs = a_pod("theirs", cpu=99, schedulerName="other")
    there = [*NODES, theirs, a_pod("ours", cpu="1"), a_pod("its-work", node="b", schedulerName="other")]
    answer = explain("-o", "json", "--from", dump(tmp_path, *there))
    found = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert {each["pod"]: each["node"] for each in found["items"]} == {"default/ours": "a", "default/theirs": None}
    assert found["otherSchedulers"] == {"default/theirs": "other"}
    told = "1 pod of other. Name that scheduler's configuration with --config."
    assert answer.stderr == f"Judged with another profile, after the others: {told}\n"


@pytest.mark.parametrize("what", [pytest.param(["web"], id="a pod"), pytest.param([], id="all pending pods")])
def test_extenders_are_not_asked_and_the_output_says_so(tmp_path: Path, what: list[str]) -> None:
    config = tmp_path / "config"
    config.write_text(CONFIG % "schedulerName: default-scheduler" + EXTENDERS, encoding="utf-8")
    files = ("--from", dump(tmp_path, *NODES, a_pod("web", cpu="1")))
    answer = explain(*what, "-o", "json", *files, "--config", str(config))
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["extendersNotAsked"] == ["http://127.0.0.1:1/scheduler"]
    assert (
        answer.stderr
        == "Not asked: the extenders http://127.0.0.1:1/scheduler. They may reject nodes or change scores.\n"
    )
    plain = explain(*what, "-o", "json", *files)
    assert json.loads(plain.stdout)["extendersNotAsked"] == [] and plain.stderr == ""
    gpus = EXTENDERS.replace("filter}", "filter, managedResources: [{name: example.com/gpu}]}")
    config.write_text(CONFIG % "schedulerName: default-scheduler" + gpus, encoding="utf-8")
    other = explain(*what, "-o", "json", *files, "--config", str(config))
    assert json.loads(other.stdout)["extendersNotAsked"] == [], "it is not interested in this pod"


def test_room_nominated_for_a_pod_of_higher_priority_is_not_free(tmp_path: Path) -> None:
    promised = a_pod("first", cpu="3", priority=10, nominated="a")
    answer = explain("web", "--from", dump(tmp_path, NODES[0], promised, a_pod("web", cpu="2")))
    assert answer.exit_code == 1 and "Insufficient cpu" in answer.output


def test_the_room_of_a_bound_pod_is_free_for_itself(tmp_path: Path) -> None:
    answer = explain("web", "--from", dump(tmp_path, a_node("a", cpu=1), a_pod("web", cpu="1", node="a")))
    assert answer.exit_code == 0 and "is on a" in answer.output


GANGS = (
    CONFIG
    % """plugins: {
  queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: '*'}]}, multiPoint: {enabled: [{name: Coscheduling}]}}
"""
)


def member(name: str, cpu: str, minimum: int = 3) -> Pod:
    prefix = "pod-group.scheduling.kubenexus.io"
    return a_pod(name, cpu=cpu, labels={f"{prefix}/name": "g", f"{prefix}/min-available": str(minimum)})


def in_a_group(folder: Path, *arguments: str, pods: list[Pod]) -> tuple[int, Any]:
    config = folder / "config"
    config.write_text(GANGS, encoding="utf-8")
    files = ("--from", dump(folder, *NODES, *pods), "--config", str(config))
    answer = explain(*arguments, *files)
    table = "-o" not in arguments
    return answer.exit_code, " ".join(answer.output.split()) if table else json.loads(answer.stdout)


@pytest.mark.parametrize(
    ("pods", "code", "said"),
    [
        pytest.param(
            [member(name, "2") for name in "xyz"],
            0,
            ["would be scheduled to", "default/z", "3 of 3 pods found a node, 3 needed"],
            id="all fit",
        ),
        pytest.param(
            [member("x", "2"), member("y", "2"), member("z", "3")],
            1,
            [
                "pod would fit on b",
                "2 of 3 pods tried found",
                "3 of 3 must",
                "pod y did not",
                "2 of 3 pods found a node, 3 needed",
            ],
            id="they fit one by one, not together",
        ),
        pytest.param(
            [member("x", "2"), member("y", "2")], 1, ["gated: pod group default/g: 2 of 3 pods exist"], id="too few"
        ),
        pytest.param(
            [member("x", "2", 2), member("y", "9", 2), member("z", "2", 2)],
            0,
            ["default/x would be scheduled to", "default/y │ none", "2 of 3 pods found a node, 2 needed"],
            id="one may fail",
        ),
        pytest.param(
            [member("x", "1"), member("y", "1"), a_pod("other", cpu="1")],
            1,
            ["2 of 3 pods exist"],
            id="other pods do not count",
        ),
    ],
)
def test_a_pending_pod_is_explained_together_with_its_group(
    tmp_path: Path, pods: list[Pod], code: int, said: list[str]
) -> None:
    exit_code, text = in_a_group(tmp_path, "x", pods=pods)
    assert exit_code == code, text
    for each in said:
        assert each in text


def test_all_pending_pods_are_explained_with_their_groups(tmp_path: Path) -> None:
    pods = [member("x", "2"), member("y", "2"), member("z", "3"), a_pod("other", cpu="1")]
    code, found = in_a_group(tmp_path, "-o", "json", pods=pods)
    nodes = {each["pod"].partition("/")[2]: each["node"] for each in found["items"]}
    assert code == 1
    assert nodes["x"] is nodes["y"] is nodes["z"] is None and nodes["other"], "a group that does not fit takes no room"
    group = next(each["podGroup"] for each in found["items"] if each["pod"] == "default/z")
    assert (group["name"], group["needed"], group["whole"]) == ("default/g", 3, False)


def test_bound_members_count_for_a_group_that_lost_one(tmp_path: Path) -> None:
    running = [bound_member("x", "a"), bound_member("y", "b")]
    code, text = in_a_group(tmp_path, "z", pods=[*running, member("z", "1")])
    assert code == 0 and "1 of 1 pods found a node, 1 needed" in text


def bound_member(name: str, node: str) -> Pod:
    pod = member(name, "1")
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        pytest.param([], 1, "1 node(s) had untolerated taint(s)", id="off by default"),
        pytest.param(["--feature-gates=TaintTolerationComparisonOperators=true"], 0, "a", id="on"),
        pytest.param(["--feature-gates=TaintToleration=true"], 2, "did you mean TaintTolerationC", id="a wrong name"),
    ],
)
def test_feature_gates(flags: list[str], code: int, says: str, tmp_path: Path) -> None:
    pod = a_pod("web")
    spec = msgspec.structs.replace(pod.spec, tolerations=(Toleration("t", "Gt", "9"),))
    file = dump(tmp_path, a_node("a", taints=["t=10:NoSchedule"]), msgspec.structs.replace(pod, spec=spec))
    answer = explain("web", "--from", file, *flags)
    assert answer.exit_code == code, answer.output
    assert says in " ".join(answer.output.split())


def test_a_pod_whose_claim_does_not_exist_is_told_so(tmp_path: Path) -> None:
    pod = a_pod("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    answer = explain("web", "--from", dump(tmp_path, *NODES, pod))
    assert answer.exit_code == 1
    assert 'could not find ResourceClaim "default/one"' in " ".join(answer.output.split())


def test_a_finished_pod_of_a_group_in_a_file_is_a_pod(tmp_path: Path) -> None:
    """Finished members are pods of the API: a document says Pod, and is read as one."""
    metadata = {"name": "done", "namespace": "default", "labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    file = tmp_path / "dump.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Failed"}})
    )
    found, skipped = cluster_objects.from_files([file])
    assert [type(each) for each in found] == [Pod] and not skipped


@pytest.mark.parametrize("what", [pytest.param(["web"], id="a pod"), pytest.param([], id="all pending pods")])
def test_without_a_configuration_the_screen_says_with_which_it_decides(tmp_path: Path, what: list[str]) -> None:
    told = "Decided with the default configuration; --config FILE names another.\n"
    files = ("--from", dump(tmp_path, *NODES, a_pod("web", cpu="1")))
    assert explain(*what, *files).stderr == told
    assert explain(*what, "-o", "json", *files).stderr == ""
    config = tmp_path / "config"
    config.write_text(CONFIG % "schedulerName: default-scheduler", encoding="utf-8")
    assert explain(*what, *files, "--config", str(config)).stderr == ""
    assert explain("-n", "nowhere", "--from", dump(tmp_path, *NODES, a_pod("web"))).stderr == "", "nothing to decide"
    manifest = tmp_path / "new.yaml"
    manifest.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, image: i}]}}", "utf-8"
    )
    assert explain("-f", str(manifest), *files).stderr.endswith(told)
