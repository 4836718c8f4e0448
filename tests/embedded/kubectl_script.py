"""The kubectl commands of a working day, as data: run against two clusters, they should print the same.

Each step is a sentence, the command, and possibly its standard input. What differs from run to run by nature
(times, uids, generated names, addresses) is masked; what differs between the clusters is in `DIFFERENCES`, with
its reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.embedded.kubectl_controllers import CONTROLLERS
from tests.embedded.kubectl_devices import DEVICES
from tests.embedded.kubectl_explain import EXPLAIN
from tests.embedded.kubectl_features import DAEMON, SERVER_SIDE, STATEFUL, Step, told_of
from tests.embedded.kubectl_manifests import (
    BROKEN,
    CHANGED,
    DEFINITION,
    IMPOSSIBLE,
    JOB,
    LIST,
    LONE,
    SET,
    WEB,
    WIDGET,
    WRONG_WIDGET,
)
from tests.embedded.kubectl_rbac import RBAC

NO_OLD_PODS = "--for=jsonpath={.status.terminatingReplicas}=0"

SCRIPT = (
    Step("apply", "apply -f -", WEB),
    Step("the rollout is waited for", "rollout status deployment/web --timeout=180s", last=True),
    Step("apply again, unchanged", "apply -f -", WEB),
    Step("an unknown field", "apply -f -", BROKEN, fails=True),
    Step("the budget counts them", "wait pdb/web --for=jsonpath={.status.currentHealthy}=3 --timeout=180s"),
    Step("get as a table", "get deployments,replicasets,pods,services,pdb"),
    Step("get wide", "get deployments,replicasets,pods,services,pdb -o wide", sorts=True),
    Step("get as yaml", "get deployment web -o yaml"),
    Step("get as json", "get deployment web -o json"),
    Step("get a replica set as yaml", "get replicasets -l app=web -o yaml"),
    Step("get names", "get pods -l app=web -o name"),
    Step("get by jsonpath", "get deployment web -o jsonpath={.status.readyReplicas}"),
    Step("get custom columns", "get deployments -o custom-columns=NAME:.metadata.name,R:.spec.replicas"),
    Step("get all with labels", "get pods -A -l app=web --show-labels", sorts=True),
    Step("get something that is not there", "get pod nobody", fails=True),
    Step("get a kind that is not there", "get gadgets", fails=True),
    Step("apply, changed", "apply -f -", CHANGED),
    Step("the second rollout is waited for", "rollout status deployment/web --timeout=180s", last=True),
    Step("its old pods are gone", f"wait deployment/web {NO_OLD_PODS} --timeout=180s"),
    Step("diffs of nothing", "diff -f -", CHANGED),
    Step("its history", "rollout history deployment/web"),
    Step("describe a deployment", "describe deployment web", shows="from 1 to 0"),
    Step("undo", "rollout undo deployment/web"),
    Step("the undoing is waited for", "rollout status deployment/web --timeout=180s", last=True),
    Step("restart", "rollout restart deployment/web"),
    Step("the restart is waited for", "rollout status deployment/web --timeout=180s", last=True),
    Step("set an image", "set image deployment/web web=registry.example/web:3"),
    Step("that is waited for, too", "rollout status deployment/web --timeout=180s", last=True),
    Step("scale", "scale deployment/web --replicas=5"),
    Step("wait for it", "wait deployment/web --for=jsonpath={.status.readyReplicas}=5 --timeout=180s"),
    Step("those of before are gone", f"wait deployment/web {NO_OLD_PODS} --timeout=180s"),
    Step("watch", "get pods -A -l app=web -w --output-watch-events --request-timeout=6s", sorts=True),
    Step("scale if", "scale deployment/web --current-replicas=2 --replicas=1", fails=True),
    Step("apply a list", "apply -f -", LIST),
    Step("delete a list", "delete -f -", LIST),
    Step("a lone pod", "apply -f -", LONE),
    Step("wait until it is ready", "wait pod/lone --for=condition=Ready --timeout=180s"),
    told_of("Scheduled", "lone"),
    Step("describe it", "describe pod lone"),
    Step("get it as yaml", "get pod lone -o yaml"),
    Step("label", "label pod lone tier=front"),
    Step("label again", "label pod lone tier=back", fails=True),
    Step("label over", "label pod lone tier=back --overwrite"),
    Step("unlabel", "label pod lone tier-"),
    Step("annotate", "annotate pod lone note=hello"),
    Step("patch", 'patch pod lone --type=merge -p {"metadata":{"labels":{"x":"y"}}}'),
    Step("patch by JSON", 'patch pod lone --type=json -p [{"op":"remove","path":"/metadata/labels/x"}]'),
    Step("a patch that is forbidden", 'patch pod lone -p {"spec":{"schedulerName":"other"}}', fails=True),
    Step("a pod that fits nowhere", "apply -f -", IMPOSSIBLE),
    Step("wait for the reason", "wait pod/huge --for=condition=PodScheduled=False --timeout=180s"),
    told_of("FailedScheduling", "huge"),
    Step("describe it", "describe pod huge"),
    Step("get it", "get pod huge -o wide"),
    Step("its events", "events --for pod/huge"),
    Step("events by kubectl get", "get events --field-selector involvedObject.name=huge"),
    Step("a job", "apply -f -", JOB),
    Step("wait for it", "wait job/once --for=condition=Complete --timeout=180s"),
    told_of("Completed", "once"),
    Step("get it", "get jobs -o wide"),
    Step("describe it", "describe job once"),
    Step("a stateful set", "apply -f -", SET),
    Step("its rollout", "rollout status statefulset/db --timeout=180s", last=True),
    Step("get it", "get statefulsets,pods -l app=db"),
    Step("get it wide", "get statefulsets -o wide"),
    Step("nodes", "get nodes"),
    Step("taint", "taint node {node} key=value:NoSchedule"),
    Step("untaint", "taint node {node} key=value:NoSchedule-"),
    Step("cordon", "cordon {node}"),
    Step("a cordoned node", "get node {node}"),
    Step("uncordon", "uncordon {node}"),
    Step("drain", "drain {node} --force --ignore-daemonsets", sorts=True),
    Step("describe a node", "describe node {node}", shows="RegisteredNode"),
    Step("uncordon again", "uncordon {node}"),
    Step("a definition", "apply -f -", DEFINITION),
    Step("wait until it is served", "wait crd/widgets.example.io --for=condition=Established --timeout=180s"),
    Step("its kind can be found", "api-resources --api-group=example.io", shows="widgets"),
    Step("a custom resource", "apply -f -", WIDGET),
    Step("one that is wrong", "apply -f -", WRONG_WIDGET, fails=True),
    Step("get it", "get widgets"),
    Step("get it wide, by its short name", "get wd -o wide"),
    Step("get it as yaml", "get widget one -o yaml"),
    Step("describe it", "describe widget one"),
    Step("patch it", 'patch widget one --type=merge -p {"spec":{"size":4}}'),
    Step("patch its status", 'patch widget one --subresource=status --type=merge -p {"status":{"ready":true}}'),
    Step("explain it", "explain widget.spec", shows="FIELDS:"),
    Step("delete it", "delete widget one"),
    Step("delete its definition", "delete crd widgets.example.io"),
    Step("create by a command", "create deployment made --image=registry.example/made:1 --replicas=2"),
    Step("its rollout", "rollout status deployment/made --timeout=180s", last=True),
    Step("a dry run", "create configmap dry --from-literal=a=b --dry-run=server -o yaml"),
    Step("a config map", "create configmap kept --from-literal=a=b"),
    Step("describe it", "describe configmap kept"),
    Step("expose", "expose deployment made --port=80 --name=exposed"),
    Step("replace", "replace -f -", LONE.replace("app: lone", "app: other"), fails=True),
    Step("what may I do", "auth can-i create pods"),
    Step("delete a pod", "delete pod lone huge"),
    Step("delete by file", "delete -f -", WEB),
    Step("nothing is left of it", "wait pods -l app=web --for=delete --timeout=180s", races=True),
    Step("delete by kind", "delete deployment,job,statefulset --all"),
    Step("pods go with their owners", "wait pods --all --for=delete --timeout=180s", races=True),
    Step("so do replica sets", "wait replicasets --all --for=delete --timeout=180s", races=True),
    Step("nothing is left", "get deployments,replicasets,pods,jobs,statefulsets", shows="No resources found"),
    *STATEFUL,
    *DAEMON,
    *SERVER_SIDE,
    *EXPLAIN,
    *CONTROLLERS,
    *RBAC,
    *DEVICES,
)  # fmt: skip

_MASKS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", "UID"),
    (r"(resourceVersion|resource-version)(\"?: ?)\"?\d+\"?", r"\1\2VERSION"),
    (r"\b(10|127|172)(\.\d{1,3}){3}\b", "ADDRESS"),
    (r"\b(web|made|ours)-[0-9a-z]{8,10}-[0-9a-z]{5}\b", r"\1-HASH-NAME"),
    (r"\b(web|made|ours)-[0-9a-z]{8,10}\b", r"\1-HASH"),
    (r"(pod-template-hash[=:\"]+ ?\"?)[0-9a-z]{8,10}", r"\1HASH"),
    (r"\boften-\d{8}\b", "often-MINUTE"),
    (r"\b(once|often-MINUTE)-[0-9a-z]{5}\b", r"\1-NAME"),
    (r"(Resource Version: +)\d+", r"\1VERSION"),
    (r"\b(db|st)-[0-9a-f]{8,10}\b", r"\1-HASH"),
    (r"(kubernetes.io/hash: )\"?[0-9a-f]{8,10}\"?", r"\1HASH"),
    (r"(?<=[\s(])(\d+[smhd])+(?=[\s,)]|$)", "AGE"),
    (r"\bAGE \(x\d+ over AGE\)", "AGE"),  # a controller whose status is refused tells the same again
    (r"\.[0-9a-f]{16}\b", ".NUMBER"),
    (r"\(combined from similar events\): ", ""),  # from the eleventh on
)  # fmt: skip
# In lists without an order, where lines that are alike are one. Which node a pod gets is for the scheduler to say.
_PLACES = (
    (r"[\w/-]*\b(web|db|lone|once|made)-[\w-]+", "POD"),
    (r"^(POD .* AGE) [a-z]+-\d( <none> <none>)$", r"\1 NODE\2"),
    (r"(\bPOD .*topology.kubernetes.io/zone=)zone-\d$", r"\1ZONE"),
)


@dataclass(frozen=True)
class Difference:
    """Where the embedded cluster is not like a real one whose kubelets are kwok's, and why; and what to put
    instead. `command`: only in the output of commands that begin like this.
    """

    reason: str
    patterns: tuple[tuple[str, str], ...]
    command: str = ""


DIFFERENCES = (
    Difference(
        "The embedded kubelets give addresses to pods and nodes; kwok, as the tests configure it, does not.",
        (
            (r"^(IPs?:.*| IP: ADDRESS| InternalIP: .*| Hostname: .*)\n", ""),
            (r"^ *(hostIP|podIP)(: ADDRESS|s:\n *- ip: ADDRESS)\n", ""),
            (r"(Running|Completed|Pending)( \S+ \S+) (ADDRESS|<none>)", r"\1\2"),
            (r"^(Node: \S+/)ADDRESS", r"\1"),
        ),
    ),
    Difference("Null fields are left out.", ((r"(?<=- )(lastProbeTime|eventTime): null\n +", ""),)),
    Difference(
        "The embedded kubelets report their version, operating system and architecture; kwok does not.",
        (
            (r"^ (Kernel|OS Image|Operating System|Architecture|Container Runtime|Kubelet)( Version)?:.*\n", ""),
            (r"^((\S+ )?\S+ Ready\S* <none> AGE) v1\.\d+\.\d+$", r"\1"),
            (r"^(Labels:)?\s*kubernetes\.io/(arch|hostname|os)=\S+\n", ""),
        ),
    ),
    Difference(
        "The conditions of nodes have the reasons of a real kubelet; with kwok they have those of the tests.",
        ((r"^ (Ready|MemoryPressure|DiskPressure|PIDPressure) (True|False) TIME TIME .*\n", ""),),
    ),
    Difference(
        "The holder of a node's lease is its kubelet; with kwok it is kwok.", ((r"^( HolderIdentity:).*", r"\1"),)
    ),
    Difference(
        "The error for an invalid change of a pod has no diff of Go structs.",
        ((r"^(@@ .*|[-+ ]? ?\"[\w./]+\": .*|[-+ ]? ?[{}\[\]],?|)\n", ""),),
    ),
    Difference(
        "`kubectl explain` describes kinds and fields in other words, and lists no values of enums.",
        ((r"^ (?!\w+ <[\w\[\]]+>( -required-)?$).*\n", ""), (r"^(DESCRIPTION:|ENUM:|)\n", "")),
        "explain ",
    ),
    Difference(
        "An object in an error is shown by its names in JSON, not by those in Go.",
        ((r"(?<=: Invalid value: )\{.*\}(?=: (field is immutable|exactly one))", "OBJECT"),),
    ),
)


def masked(text: str) -> str:
    """What is left when everything that differs by nature is gone; columns are made one space wide."""
    for pattern, instead in _MASKS:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return "".join(re.sub(r" {2,}|\t", " ", line).rstrip() + "\n" for line in text.splitlines())


def _in_order(listed: re.Match[str]) -> str:
    """The faults that a limit range finds: the real server finds them in the order of a Go map, which is none."""
    return ", ".join(sorted(re.split(r", (?=maximum |minimum |\w+ max )", listed[0])))


def comparable(step: Step, text: str, differences: tuple[Difference, ...] = DIFFERENCES) -> list[str]:
    """The lines that two clusters should agree on."""
    text = re.sub(r"(?<=is forbidden: \[).*(?=\]$)", _in_order, masked(text), flags=re.MULTILINE)
    known = [each.patterns for each in differences if step.command.startswith(each.command)]
    for pattern, instead in (pair for patterns in known for pair in patterns):
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    lines = text.splitlines()
    if step.races:
        return []
    if step.last:
        return lines[-1:]
    if not step.sorts:
        return lines
    for pattern, instead in _PLACES:
        lines = [re.sub(pattern, instead, line) for line in lines]
    return sorted({*lines})
