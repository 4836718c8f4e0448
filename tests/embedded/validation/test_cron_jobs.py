"""CronJobs that are refused, with the words of the real server, and what is filled in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.client import Client

PATH = "/apis/batch/v1/namespaces/default/cronjobs"


def a_cron_job(policy: str = "Never", **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": policy, "containers": [{"name": "c", "image": "x"}]}
    job = {"spec": {"template": {"spec": pod}}}
    return {"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": job, **spec}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(a_cron_job(schedule=""), "spec.schedule: Required value", id="no schedule"),
        pytest.param(a_cron_job(schedule="1 * *"),
                     'spec.schedule: Invalid value: "1 * *": expected exactly 5 fields, found 3: [1 * *]',
                     id="three fields"),
        pytest.param(a_cron_job(schedule="TZ=UTC * * * * *"), "cannot use TZ or CRON_TZ",
                     id="a zone in it"),
        pytest.param(a_cron_job(timeZone="Mars/North"),
                     'spec.timeZone: Invalid value: "Mars/North": unknown time zone Mars/North', id="an unknown zone"),
        pytest.param(a_cron_job(timeZone="../etc/passwd"), "unknown time zone ../etc/passwd", id="a path for a zone"),
        pytest.param(a_cron_job(timeZone=""), "timeZone must be nil or non-empty string", id="an empty zone"),
        pytest.param(a_cron_job(timeZone="local"), "timeZone must be an explicit time zone", id="the local zone"),
        pytest.param(a_cron_job(concurrencyPolicy="Maybe"),
                     'Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"', id="a policy"),
        pytest.param(a_cron_job(startingDeadlineSeconds=-1), "must be greater than or equal to 0", id="a deadline"),
        pytest.param(a_cron_job(failedJobsHistoryLimit=-1), "must be greater than or equal to 0", id="a limit"),
        pytest.param(a_cron_job("Always"), 'Required value: valid values: "OnFailure", "Never"', id="no end"),
        pytest.param({**a_cron_job(), "metadata": {"name": "a" * 53}}, "must be no more than 52 characters",
                     id="a name"),
    ],
)  # fmt: skip
def test_what_is_refused(document: dict[str, Any], message: str) -> None:
    code, body = Client().ask("POST", PATH, document)
    assert code == 422
    assert message in body["message"]


def test_what_is_filled_in() -> None:
    code, body = Client().ask("POST", PATH, a_cron_job())
    assert code == 201
    spec = body["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert "backoffLimit" not in spec["jobTemplate"]["spec"]  # the job gets it, not its template
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
