"""Nodes share what they have in common, and each is still what its own document says."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects import kinds
from stowplan.objects.node_documents import NodeDecoder
from stowplan.objects.nodes import Node
from stowplan.objects.quantity import custom_value
from tests.strategies import NODES

PLAIN = msgspec.json.Decoder(Node, dec_hook=custom_value)


@given(st.sampled_from(NODES))
def test_it_reads_what_a_plain_decoder_reads(node: Node) -> None:
    text = msgspec.json.encode(node, enc_hook=str)
    assert NodeDecoder().decode(text) == PLAIN.decode(text)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'{"status": {"allocatable": {"cpu": "one"}}}', id="amounts"),
        pytest.param(b'{"status": {"images": [{"names": 5}]}}', id="images"),
        pytest.param(b'{"status": {"declaredFeatures": [1]}}', id="features"),
        pytest.param(b'{"status": {"conditions": [{"type": 1}]}}', id="conditions"),
        pytest.param(b'{"spec": null}', id="null"),
    ],
)
def test_what_a_plain_decoder_refuses_is_refused(broken: bytes) -> None:
    for decoder in (PLAIN, NodeDecoder(), NodeDecoder()):
        with pytest.raises(msgspec.MsgspecError):
            decoder.decode(broken)


def test_nodes_share_amounts_conditions_and_images() -> None:
    images = [{"names": ["web:1"], "sizeBytes": 5}, {"names": ["db:1"], "sizeBytes": 7}]
    found = []
    for name, beat in (("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")):
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}]
        status = {"allocatable": {"cpu": "4"}, "conditions": conditions, "images": images}
        found.append(kinds.decode(Node, msgspec.json.encode({"metadata": {"name": name}, "status": status})))
        images.reverse()
    one, two = found
    assert (one.name, two.name) == ("a", "b")
    assert one.status.allocatable is two.status.allocatable
    assert one.status.conditions is two.status.conditions
    assert one.status.images[0] is two.status.images[1]
