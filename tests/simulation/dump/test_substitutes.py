"""Substitutes for names: the same in every place, different for different words, and composed as the words are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects.selectors import integer, is_label_key
from stowplan.simulation.dump.substitutes import Substitutes
from tests.hypothesis_settings import at_most

KEY = b"a key of the test"


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("topology.kubernetes.io/zone", id="a key of Kubernetes"),
        pytest.param("kube-system", id="a namespace of every cluster"),
        pytest.param("nvidia.com/gpu", id="a resource"),
        pytest.param("scheduling.x-k8s.io/pod-group", id="a key that a policy reads"),
        pytest.param("kept-on-request", id="a word that is kept on request"),
        pytest.param("", id="nothing"),
    ],
)
def test_own_words_stay(word: str) -> None:
    assert Substitutes(KEY, keep=["kept-on-request"]).word(word) == word


@pytest.mark.parametrize(
    ("composed", "part"),
    [
        pytest.param("web-api-7d9f-x2x", "web-api-7d9f", id="a pod and its ReplicaSet"),
        pytest.param("team.example.com/web", "team.example.com", id="a key and its domain"),
        pytest.param("registry:5000/web", "registry", id="an image and its registry"),
        pytest.param("kubernetes.io/aws-ebs,acme.io/disk", "kubernetes.io/aws-ebs", id="a list and its first"),
    ],
)
def test_what_is_composed_stays_composed(composed: str, part: str) -> None:
    substitutes = Substitutes(KEY)
    assert substitutes.word(composed).startswith(substitutes.word(part))


def test_an_ordinal_stays_where_pods_have_one() -> None:
    substitutes = Substitutes(KEY, numbered={"db", "data-db"})
    assert substitutes.word("db-12") == substitutes.word("db") + "-12"
    assert substitutes.word("data-db-12") == substitutes.word("data-db") + "-12"
    assert not substitutes.word("ip-10-0-3-12").endswith("12")


def test_an_image_without_a_tag_is_the_latest() -> None:
    substitutes = Substitutes(KEY)
    assert substitutes.image("shop/web:latest") == substitutes.image("shop/web") + ":latest"
    assert not substitutes.image("shop/web:1.2").endswith((":1.2", ":latest"))


@pytest.mark.parametrize(
    ("address", "form"),
    [
        pytest.param("192.168.7.9", "10.", id="IPv4"),
        pytest.param("2001:db8::7", "fd00::", id="IPv6"),
        pytest.param("0.0.0.0", "0.0.0.0", id="every address stays"),
    ],
)
def test_an_address_has_an_address(address: str, form: str) -> None:
    assert Substitutes(KEY).address(address).startswith(form)


def test_integers_that_are_compared_keep_their_order_and_their_form() -> None:
    texts = ["3", "03", "+3", "17", "-4", "-90", "0", "4000000"]
    substitutes = Substitutes(KEY, compared=[*texts, "no number"])
    found = [integer(substitutes.word(text)) for text in texts]
    assert None not in found
    assert sorted(range(8), key=lambda at: (integer(texts[at]), at)) == sorted(range(8), key=lambda at: (found[at], at))
    assert len({substitutes.word(text) for text in texts}) == 8
    assert not {substitutes.word(text) for text in texts} & set(texts) - {"0"}
    assert integer(substitutes.word("no number")) is None


def test_without_the_key_a_word_cannot_be_tried() -> None:
    one, same, other = Substitutes(b"one"), Substitutes(b"one"), Substitutes(b"other")
    assert one.word("payments") == same.word("payments") != other.word("payments")


@at_most(50)
@given(st.lists(st.text(max_size=80), max_size=20, unique=True))
def test_different_words_have_different_substitutes(words: list[str]) -> None:
    substitutes = Substitutes(KEY, numbered={"a"})
    assert len({substitutes.word(word) for word in words}) == len(words)


LABEL = st.from_regex(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,61}[A-Za-z0-9]", fullmatch=True)


@at_most(50)
@given(LABEL | st.text(max_size=70))
def test_what_was_a_label_is_one_and_what_was_none_is_none(word: str) -> None:
    assert is_label_key(Substitutes(KEY).word(word)) == is_label_key(word)
