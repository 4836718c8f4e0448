"""The rights that the plugins of a configuration need, and the ClusterRole that grants them.

`deploy/rbac.yaml` grants what the engine does itself and what the default profile needs (`granted`; a test compares).
What a configuration needs beyond that follows from what its plugins declare: a kind that is read is listed and watched,
never read one by one; the words of `writes` are verbs, "status" is a patch of the status subresource, and "evict" makes
an eviction. Whether a
CRD is there is asked of the discovery API, which every authenticated user may read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from stowplan.apps import plugin_kinds, profile_loader
from stowplan.framework.declared_kinds import reads_of, writes_of
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES, ApiResource

Rights: TypeAlias = dict[tuple[str, str], set[str]]  # verbs, by API group and resource

# What the engine does whatever plugins there are: bindings, conditions, preemption, a lost answer, events.
OF_THE_ENGINE: Rights = {
    ("", "pods"): {"get", "list", "watch", "delete"},
    ("", "pods/binding"): {"create"},
    ("", "pods/status"): {"patch"},
    ("", "nodes"): {"list", "watch"},
    ("events.k8s.io", "events"): {"create", "patch"},
}
# What the writes of resource claims need besides (`objects/claim_calls.py`).
OF_CLAIMS: Rights = {
    ("resource.k8s.io", "resourceclaims"): {"get"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    ("resource.k8s.io", "resourceclaims/driver"): {"arbitrary-node:patch"},
}
READ = ("list", "watch")
SUBRESOURCES = {"status": ("/status", "patch"), "evict": ("/eviction", "create")}  # and the verb, by the word
ACCOUNT, NAMESPACE = "stowplan", "kube-system"  # of deploy/rbac.yaml


def granted() -> Rights:
    """Return what deploy/rbac.yaml grants in the whole cluster."""
    _, defaults = profile_loader.defaults()
    found = {key: set(verbs) for key, verbs in OF_THE_ENGINE.items()}
    for key, verbs in needed(defaults.values()).items():
        found.setdefault(key, set()).update(verbs)
    return found


def needed(profiles: Iterable[Profile]) -> Rights:
    """Return what the plugins need."""
    listed, found = list(profiles), Rights()
    known = RESOURCES | plugin_kinds.brought(listed)
    for plugin in (enabled.plugin for profile in listed for enabled in profile.all):
        for kind in reads_of(plugin):
            _add(found, known[kind], READ)
        for kind, words in writes_of(plugin).items():
            _add(found, known[kind], words)
            if kind == "ResourceClaim":
                for key, verbs in OF_CLAIMS.items():
                    found.setdefault(key, set()).update(verbs)
    return found


def _add(rights: Rights, resource: ApiResource, words: Iterable[str]) -> None:
    for word in words:
        subresource, verb = SUBRESOURCES.get(word, ("", word))
        plural = resource.plural + subresource
        rights.setdefault((resource.group, plural), set()).add(verb)


def beyond(profiles: Iterable[Profile]) -> Rights:
    """Return what the plugins need and deploy/rbac.yaml does not grant."""
    have = granted()
    missing = {key: verbs - have.get(key, set()) for key, verbs in sorted(needed(profiles).items())}
    return {key: verbs for key, verbs in missing.items() if verbs}


def told(rights: Mapping[tuple[str, str], set[str]]) -> str:
    """Return the rights in one line: "list, watch teambudgets.example.com; patch teambudgets.example.com/status"."""
    lines = []
    for (group, resource), verbs in rights.items():
        plural, slash, status = resource.partition("/")
        lines.append(f"{', '.join(_ordered(verbs))} {plural}{f'.{group}' if group else ''}{slash}{status}")
    return "; ".join(lines)


def manifest(rights: Mapping[tuple[str, str], set[str]], scheduler_name: str) -> str:
    """Return a ClusterRole with these rights, and its binding to the account of deploy/rbac.yaml, for `kubectl apply`.

    Without rights the role is empty: to apply it takes back what an older configuration needed.
    """
    name = json.dumps(f"stowplan:plugins:{scheduler_name}")
    rules = [
        f"  - apiGroups: [{json.dumps(group)}]\n    resources: [{resource}]\n    verbs: [{', '.join(_ordered(verbs))}]"
        for (group, resource), verbs in rights.items()
    ]
    return "\n".join(
        (
            "# What the plugins need beyond deploy/rbac.yaml, as `stowplan config check --rbac` prints it.",
            "apiVersion: rbac.authorization.k8s.io/v1",
            "kind: ClusterRole",
            "metadata:",
            f"  name: {name}",
            "  labels: {app.kubernetes.io/name: stowplan}",
            *(("rules:", *rules) if rules else ("rules: []",)),
            "---",
            "apiVersion: rbac.authorization.k8s.io/v1",
            "kind: ClusterRoleBinding",
            "metadata:",
            f"  name: {name}",
            "  labels: {app.kubernetes.io/name: stowplan}",
            f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}",
            "subjects:  # the account of deploy/rbac.yaml; name the one that your scheduler runs as",
            f"  - {{kind: ServiceAccount, name: {ACCOUNT}, namespace: {NAMESPACE}}}",
        )
    )


def _ordered(verbs: Iterable[str]) -> list[str]:
    """Return verbs in the order of deploy/rbac.yaml."""
    order = ("get", "list", "watch", "create", "patch", "delete", "arbitrary-node:patch")
    return sorted(verbs, key=order.index)
