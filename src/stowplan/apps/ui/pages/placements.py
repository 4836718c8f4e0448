"""Placements: which clusters each gets and why, what the scores are and how old, and how decisions changed.

The data of one placement is what `stowplan place explain NAME -o json` prints, with the age of its scores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from stowplan.apps.explain.texts import ago, counted
from stowplan.apps.place import diagnosis_output
from stowplan.apps.place.explain import satisfied
from stowplan.apps.place.explain_json import explained
from stowplan.apps.ui.cluster import OF_A_HUB, ClusterModel
from stowplan.apps.ui.feed import PLACED
from stowplan.apps.ui.markup import Child, Markup, element
from stowplan.apps.ui.remedies import causes, remedies
from stowplan.apps.ui.score_bars import stacked
from stowplan.apps.ui.view import Json, View, clock, empty, part, placement_link, since, table
from stowplan.diagnosis.placements.diagnosis import diagnose_placement
from stowplan.framework.placement.evaluation import finished
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster
from stowplan.objects.placements import SATISFIED, Placement, PlacementDecision

MOST = 300
MOST_CLUSTERS = 100


def read_all(model: ClusterModel) -> dict[str, Any]:
    decided: dict[str, list[str]] = {}
    clusters = 0
    for each in model.snapshot.objects.values():
        if isinstance(each, PlacementDecision):
            decided.setdefault(each.placement, []).extend(each.cluster_names)
        clusters += isinstance(each, ManagedCluster)
    found = [_summary_of(each, decided.get(each.key, [])) for each in model.hub.placements.values()]
    return {"now": model.now(), "clusters": clusters, "items": sorted(found, key=lambda each: each["placement"])}


def _summary_of(found: Placement, clusters: list[str]) -> dict[str, Any]:
    condition = found.condition(SATISFIED)
    return {
        "placement": found.key,
        "wanted": found.spec.number_of_clusters,
        "clusters": sorted(clusters),
        "satisfied": None if condition is None else condition.status,
        "reason": "" if condition is None else condition.reason,
        "message": "" if condition is None else condition.message,
    }


def read(model: ClusterModel, key: str) -> dict[str, Any] | None:
    placement = model.hub.placements.get(key)
    if placement is None:
        return None
    now = time.time()
    objects = [each for each in model.snapshot.objects.values() if isinstance(each, OF_A_HUB)]
    answer = explained(finished(lambda: model.hub.choose(placement, now)))
    diagnosis = diagnose_placement(placement, objects, model.policies.clusters, now)
    typed = diagnosis_output.commands(diagnosis, placement, objects, model.policies.flags)
    answer |= diagnosis_output.as_json(diagnosis, typed)
    names = {each["name"] for each in answer["prioritizeResults"]}
    decided = [{"at": each.at, "message": each.message} for each in model.feed.of_pod(key, 100) if each.event == PLACED]
    scores = [_score(each, now) for each in objects if isinstance(each, AddOnPlacementScore) and _is_used(each, names)]
    return answer | {"now": model.now(), "scores": scores[:MOST], "decided": decided}


def _is_used(found: AddOnPlacementScore, prioritizers: set[str]) -> bool:
    return any(found.name in each.split("/") for each in prioritizers)


def _score(found: AddOnPlacementScore, now: float) -> dict[str, Any]:
    changed = [each.last_transition_time for each in found.status.conditions if each.last_transition_time]
    until = found.valid_until
    return {
        "cluster": found.cluster,
        "resource": found.name,
        "values": found.values,
        "changed": max(each.timestamp() for each in changed) if changed else None,
        "validUntil": None if math.isinf(until) else until,
        "expired": until <= now,
    }


def show_all(data: Json) -> View:
    rows = [
        (placement_link(each["placement"]), f"{len(each['clusters']):,}",
         "all" if each["wanted"] is None else f"{each['wanted']:,}", ", ".join(each["clusters"][:5])
         + (" …" if len(each["clusters"]) > 5 else ""), each["message"] or each["reason"])
        for each in data["items"][:MOST]
    ]  # fmt: skip
    if not rows:
        text = "This cluster has no Placements: it is no hub of Open Cluster Management."
        return View("Placements", {"placements": empty(text)})
    note = f"{counted(len(data['items']), 'placement')} and {counted(data['clusters'], 'cluster')}."
    heads = ("placement", "has", "asks for", "clusters", "what its status says")
    return View("Placements", {"placements": part("All placements", table(heads, rows, numbers=[1, 2]), note=note)})


def show(data: Json) -> View:
    metadata, condition = data["placement"]["metadata"], satisfied(dict(data))
    name = f"{metadata['namespace']}/{metadata['name']}"
    told = f"{len(data['selected'])} of {counted(data['candidates'], 'cluster')}: {condition['message']}"
    told = f"It cannot be decided: {data['error']}" if data["error"] else f"It gets {told} ({condition['reason']})."
    parts = {
        "answer": element("p", told, class_="sentence"),
        "clusters": part("Clusters by score", *_ranked(data)),
        "dropped": _dropped(data),
        "help": _help(data),
        "scores": _scores(data),
        "decided": _decided(data),
    }
    return View(f"Placement {name}", {name: each for name, each in parts.items() if each})


def _ranked(data: Json) -> Iterator[Child]:
    ranked = data["aggregatedScores"]
    if not ranked:
        yield empty("No cluster passes all predicates.")
        return
    weighted = [each for each in data["prioritizeResults"] if each["weight"]]
    selected = {each["clusterName"] for each in data["selected"]}
    needs = {each["clusterName"]: each["needs"] for each in data["passedOver"]}
    most = max((abs(each["score"]) for each in ranked), default=1)
    rows = []
    for each in sorted(ranked, key=lambda each: each["clusterName"] not in selected)[:MOST_CLUSTERS]:
        cluster = each["clusterName"]
        scores = [(of["name"], of["scores"].get(cluster, 0) * of["weight"]) for of in weighted]
        state = "selected" if cluster in selected else f"needs +{needs[cluster]}" if cluster in needs else ""
        told = [str(of["scores"].get(cluster, "")) for of in weighted]
        rows.append((cluster, state, f"{each['score']:,}", stacked(scores, most), *told))
    heads = ("cluster", "", "total", "", *(f"{each['name']} ×{each['weight']}" for each in weighted))
    yield table(heads, rows, numbers=[2, *range(4, len(heads))], class_="scores")
    if len(ranked) > MOST_CLUSTERS:
        yield element("p", f"… and {len(ranked) - MOST_CLUSTERS:,} more", class_="note")


def _dropped(data: Json) -> Markup | None:
    rows = [(each["clusterName"], each["plugin"], each["reason"]) for each in data["dropped"][:MOST_CLUSTERS]]
    if not rows:
        return None
    rest = len(data["dropped"]) - MOST_CLUSTERS
    more = element("p", f"… and {rest:,} more", class_="note") if rest > 0 else None
    return part("Clusters that were dropped", table(("cluster", "by", "because"), rows), more)


def _help(data: Json) -> Markup | None:
    item = {
        "podCauses": data["causes"],
        "causes": [{"count": each["count"], "nodes": each["clusters"], "causes": each["causes"]}
                   for each in data["clusterCauses"]],
    }  # fmt: skip
    found = remedies(data)
    if not (data["causes"] or data["clusterCauses"] or found):
        return None
    return part("What it lacks, and what would help", _lacks(item), found)


def _lacks(item: Json) -> Markup:
    return causes(item, "clusters", linked=False)


def _scores(data: Json) -> Markup | None:
    rows = []
    for each in data["scores"]:
        values = ", ".join(f"{name} {value}" for name, value in each["values"].items())
        left = "no end" if each["validUntil"] is None else "expired" if each["expired"] else ""
        left = left or f"for {ago(each['validUntil'] - data['now'])}"
        changed = f"{since(each['changed'], data['now'])} ago" if each["changed"] else "not known"
        rows.append((each["cluster"], each["resource"], values, changed, left))
    if not rows:
        return None
    return part("Scores and their age", table(("cluster", "resource", "scores", "changed", "valid"), rows))


def _decided(data: Json) -> Markup:
    rows = [(clock(each["at"]), since(each["at"], data["now"]), each["message"]) for each in data["decided"]]
    shown = (
        table(("when", "ago", "clusters"), rows) if rows else empty("It has not changed since this page watches it.")
    )
    return part("Decisions over time", shown)
