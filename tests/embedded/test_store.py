"""The store: versions, logs, indexes, owners."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.store import DocumentStore, StoreChange


def document(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", **more}}


@pytest.fixture
def store() -> DocumentStore:
    return DocumentStore(keep=5)


def test_each_write_has_the_next_version(store: DocumentStore) -> None:
    first = store.put("pods", "a/x", document("x"))
    second = store.put("nodes", "n", document("n"))
    gone = store.remove("pods", "a/x")
    assert (first.version, second.version, gone.version, store.version) == (1, 2, 3, 3)
    assert gone.document["metadata"]["resourceVersion"] == "3"
    assert first.document["metadata"]["resourceVersion"] == "1"


def test_lists_are_in_the_order_of_namespace_and_name(store: DocumentStore) -> None:
    for key in ("b/a", "a-b/z", "a/z", "a/b"):
        store.put("pods", key, document(key))
    assert [stored.document["metadata"]["name"] for stored in store.all("pods")] == ["a/b", "a/z", "a-b/z", "b/a"]
    assert len(store.all("pods", "a")) == 2


def test_listeners_hear_of_each_change_with_what_was_before(store: DocumentStore) -> None:
    heard: list[StoreChange] = []
    store.listeners.append(heard.append)
    store.put("pods", "a/x", document("x"))
    store.put("pods", "a/x", document("x", labels={"k": "v"}))
    store.remove("pods", "a/x")
    assert [(one.before is None, one.now is None) for one in heard] == [(True, False), (False, False), (False, True)]
    assert heard[2].document["metadata"]["labels"] == {"k": "v"}


def test_an_index_follows_its_objects(store: DocumentStore) -> None:
    store.put("pods", "a/x", {**document("x"), "node": "n1"})
    pods = store.collection("pods")
    pods.index("node", lambda pod: str(pod.get("node", "")))
    store.put("pods", "a/y", {**document("y"), "node": "n1"})
    store.put("pods", "a/x", {**document("x"), "node": "n2"})
    assert [stored.document["metadata"]["name"] for stored in pods.find("node", "n1") or ()] == ["y"]
    store.remove("pods", "a/y")
    assert pods.find("node", "n1") == []
    assert pods.find("unknown", "n1") is None


def test_owners_are_known_by_uid(store: DocumentStore) -> None:
    store.put("pods", "a/x", document("x", ownerReferences=[{"uid": "o"}]))
    assert store.owned_by("o") == [("pods", "a/x")]
    assert store.owned_by("o", "nodes") == []
    store.put("pods", "a/x", document("x"))
    assert store.owned_by("o") == []


def test_a_full_log_drops_its_oldest_entries(store: DocumentStore) -> None:
    for number in range(11):
        store.put("pods", f"a/{number}", document(str(number)))
    log = store.collection("pods").log
    assert log.position_after(3) is None
    position = log.position_after(6)
    assert position is not None
    assert [entry.version for entry in log.since(position) or ()] == [7, 8, 9, 10, 11]
    assert log.since(log.first - 1) is None


def test_compaction_forgets_everything_before_now(store: DocumentStore) -> None:
    store.put("pods", "a/x", document("x"))
    store.compact()
    log = store.collection("pods").log
    assert log.position_after(0) is None
    assert log.position_after(1) == log.end


def test_a_dropped_collection_loses_its_objects(store: DocumentStore) -> None:
    store.put("widgets.example.io", "a/x", document("x"))
    heard: list[StoreChange] = []
    store.listeners.append(heard.append)
    store.drop("widgets.example.io")
    assert [one.now for one in heard] == [None]
    assert store.all("widgets.example.io") == []
