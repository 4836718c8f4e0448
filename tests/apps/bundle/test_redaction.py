"""No secret gets through, and what is none stays readable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.apps.bundle.redaction import LEFT_OUT, Redaction

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl-_x"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----"

SECRET_DOCUMENTS = {
    "a password": {"args": {"password": "hunter2"}},
    "a name in another spelling": {"dbPassword": "hunter2"},
    "an underscore": {"api_key": "hunter2"},
    "a header": {"headers": {"Authorization": "Bearer hunter2"}},
    "the key of an extender": {"tlsConfig": {"keyData": "aHVudGVyMgo=hunter2"}},
    "a certificate": {"tlsConfig": {"certData": "hunter2"}},
    "a list": {"tokens": ["hunter2", {"value": "hunter2"}]},
    "all below a secret": {"credentials": {"user": "hunter2", "more": {"x": "hunter2"}}},
    "a number": {"secret": 4711001},
    "a URL": {"url": "https://robot:hunter2@scores.example/q"},
    "a parameter of a URL": {"url": "https://scores.example/q?token=hunter2&x=1"},
    "a token by its looks": {"args": {"greeting": f"x {TOKEN} y"}},
    "a key by its looks": {"args": {"greeting": KEY}},
    "a text with a pair": {"message": 'plugin "X" failed: login with password=hunter2 refused'},
    "JSON in a text": {"message": '{"password": "hunter2"}'},
    "a key of a cloud": {"args": {"id": "AKIAABCDEFGHIJKLMNOP"}},
    "a name that is a secret": {"notes": {f"Bearer {TOKEN}": 1}},
}
MARKS = ("hunter2", "4711001", TOKEN, "MIIEowIBAAKCAQEA7", "AKIAABCDEFGHIJKLMNOP")


@pytest.mark.parametrize("document", SECRET_DOCUMENTS.values(), ids=SECRET_DOCUMENTS)
def test_a_secret_of_a_document_is_left_out(document: Any) -> None:
    for told in (
        Redaction().json(json.dumps(document).encode()),
        Redaction().json_lines(json.dumps(document).encode()),
    ):
        assert not any(mark in told.decode() for mark in MARKS), told
        assert LEFT_OUT in told.decode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Authorization: Bearer hunter2", id="a header"),
        pytest.param("authorization: Basic aHVudGVyMmh1bnRlcjI=hunter2", id="basic authentication"),
        pytest.param("--hub-token=hunter2 --v=2", id="a flag"),
        pytest.param('{"password": "hunter2"', id="half a document"),
        pytest.param('I1119 "Asked" body="{\\"password\\":\\"hunter2\\"}"', id="JSON in a log line"),
        pytest.param("DB_PASSWORD='hunter2'", id="a variable"),
        pytest.param(f"key: |\n{KEY}\nmore", id="a key"),
        pytest.param(KEY.rpartition("\n")[0], id="a key that is cut off"),
        pytest.param(f"TokenReview of {TOKEN} refused", id="a token"),
        pytest.param("GET https://robot:hunter2@example/ refused", id="a URL"),
    ],
)
def test_a_secret_of_a_text_is_left_out(text: str) -> None:
    redaction = Redaction()
    told = redaction.text(text)
    assert not any(mark in told for mark in MARKS), told
    assert LEFT_OUT in told and redaction.count >= 1
    assert redaction.text(told) == told, "a second time changes nothing"


PLAIN_DOCUMENTS = {
    "names of files and Secrets": {"tokenFile": "/run/token", "secretName": "hub", "passwordFile": "p"},
    "a switch": {"automountServiceAccountToken": False, "token": "", "secret": None},
    "what a scheduler is configured by": {
        "profiles": [{"schedulerName": "stowplan", "plugins": {"score": {"enabled": [{"name": "Fit", "weight": 3}]}}}],
        "leaderElection": {"leaseDuration": "15s", "resourceName": "stowplan"},
    },
    "a decision": {"pod": "shop/token-service-0", "node": "a", "message": "0/3 nodes are available: 3 x."},
}  # fmt: skip


@pytest.mark.parametrize("document", PLAIN_DOCUMENTS.values(), ids=PLAIN_DOCUMENTS)
def test_what_is_no_secret_stays(document: Any) -> None:
    redaction = Redaction()
    assert json.loads(redaction.json(json.dumps(document).encode())) == document and redaction.count == 0


def test_metrics_stay_as_they_are() -> None:
    text = (
        '# HELP x Renewals of the token for the hub: done, failed.\nstowplan_token_renewals_total{result="done"} 3.0\n'
    )
    assert Redaction().text(text.replace("hub: ", "hub; ")) == text.replace("hub: ", "hub; ")
