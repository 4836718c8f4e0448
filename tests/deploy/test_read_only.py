"""deploy/read-only.yaml grants what explain reads, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stowplan.apps import profile_loader
from stowplan.apps.dump.cluster_reader import LISTED
from stowplan.apps.explain import sources
from stowplan.kube.resources import RESOURCES, ApiResource

FILE = Path(__file__).parents[2] / "deploy" / "read-only.yaml"
Rights = dict[tuple[str, str], set[str]]


def granted(kind: str) -> Rights:
    found: Rights = {}
    for document in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
        for rule in document["rules"] if document["kind"] == kind else ():
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


def test_the_role_has_what_explain_reads() -> None:
    needed: Rights = {}

    def needs(resource: ApiResource, verb: str) -> None:
        needed.setdefault((resource.group, resource.plural), set()).add(verb)

    _, profiles = profile_loader.defaults()
    for profile in profiles.values():
        for kind in {*profile.reads, *sources.ALWAYS}:
            needs(RESOURCES[kind], "list")
    for resource in sources.SINGLE.values():
        needs(resource, "get")
    for kind in sources.LISTED:
        needs(sources.OWNERS[kind], "list")
    needs(sources.EVENTS, "list")
    needs(sources.LIMIT_RANGES, "list")
    needs(sources.QUOTAS, "list")
    needs(LISTED["ResourceClaimTemplate"], "list")  # only a dump has them
    assert granted("ClusterRole") == needed


def test_leases_are_read_in_one_namespace() -> None:
    assert granted("Role") == {(sources.LEASES.group, sources.LEASES.plural): {"list"}}
    (role,) = (each for each in documents() if each["kind"] == "Role")
    assert role["metadata"]["namespace"] == sources.LEASE_NAMESPACE


def test_each_role_is_bound() -> None:
    named = {(each["kind"], each["metadata"]["name"]) for each in documents() if "rules" in each}
    bound = {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in documents() if "roleRef" in each}
    assert named == bound


def documents() -> list[Any]:
    return list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
