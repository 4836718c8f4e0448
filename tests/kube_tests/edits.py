"""The edits that make kube-scheduler's integration tests drive another program.

Each edit has an anchor, a text that occurs exactly once in its file. If it does not, the module is not the one that
this was written for, and the edit fails. Edits insert text of ours before or after the anchor; few replace it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

GO = Path(__file__).with_name("go")


class EditError(Exception):
    """An anchor is not where it should be."""


@dataclass(frozen=True)
class Edit:
    """`text` is put before, after, or instead of the anchor in this file of the module."""

    file: str
    where: Literal["before", "after", "instead of"]
    anchor: str
    text: str

    def apply(self, source: str) -> str:
        found = source.count(self.anchor)
        if found != 1:
            raise EditError(f"{self.file}: found {self.anchor!r} {found} times, expected it once")
        before = self.text if self.where == "before" else ""
        after = self.text if self.where == "after" else ""
        middle = self.text if self.where == "instead of" else self.anchor
        return source.replace(self.anchor, before + middle + after)


SCHEDULER = "pkg/scheduler/scheduler.go"
UTIL = "test/integration/util/util.go"
FILTERS = "test/integration/scheduler/filters/filters_test.go"
DAEMONS = "test/integration/daemonset/daemonset_test.go"
QUEUE = "test/integration/scheduler/queueing/queue.go"
IMPORT_FEATURES = '\t"k8s.io/kubernetes/pkg/features"\n'

EDITS = (
    # The scheduler starts the program when it is made, and lets it work when it is run.
    Edit(SCHEDULER, "before", "\tpodGroupLister schedulinglisters.PodGroupLister\n\n", "\texternal *external\n\n"),
    Edit(
        SCHEDULER,
        "after",
        "\tsched.NextPod = podQueue.Pop\n",
        "\tif sched.external, err = startExternal(ctx, options); err != nil {\n\t\treturn nil, err\n\t}\n",
    ),
    Edit(
        SCHEDULER,
        "after",
        "func (sched *Scheduler) Run(ctx context.Context) {\n",
        "\tif sched.external != nil {\n\t\tsched.external.run(ctx)\n\t\treturn\n\t}\n",
    ),
    # A test that works kube-scheduler by hand would pass without the program having done anything.
    Edit(
        "pkg/scheduler/schedule_one.go",
        "after",
        "func (sched *Scheduler) ScheduleOne(ctx context.Context) {\n",
        "\tif sched.external != nil {\n"
        "\t\tif t, ok := ctx.(interface{ Skipf(string, ...any) }); ok {\n"
        '\t\t\tt.Skipf("%s: the test calls ScheduleOne itself", ExternalNA)\n'
        "\t\t}\n"
        '\t\tpanic(ExternalNA + ": ScheduleOne")\n'
        "\t}\n",
    ),
    Edit(
        UTIL,
        "before",
        '\t\tt.Fatalf("Couldn\'t create scheduler: %v", err)\n',
        "\t\tif strings.Contains(err.Error(), scheduler.ExternalNA) {\n\t\t\tt.Skip(err.Error())\n\t\t}\n",
    ),
    Edit(UTIL, "before", '\t"sync/atomic"\n', '\t"strings"\n'),
    Edit(
        UTIL,
        "before",
        "\topts = append(opts, scheduler.WithKubeConfig(testCtx.KubeConfig))\n",
        "\tscheduler.ExternalTest.Store(t.Name())\n",
    ),
    # These wait for kube-scheduler's cache in the test's process; the program's may be a moment behind.
    Edit(
        UTIL,
        "after",
        'cannot obtain available nodes in scheduler cache: %v", err)\n\t}\n',
        "\tscheduler.ExternalSettle()\n",
    ),
    Edit(
        UTIL,
        "after",
        "func WaitCachedPodsStable(testCtx *TestContext, pods []*v1.Pod) error {\n",
        "\tdefer scheduler.ExternalSettle()\n",
    ),
    # Here the informers of the test's process may be a moment behind the API server, which the program wrote to.
    Edit(FILTERS, "before", "\t\t\t// Make sure pending queue is empty.\n", "\t\t\tscheduler.ExternalSettle()\n"),
    Edit(FILTERS, "after", IMPORT_FEATURES, '\t"k8s.io/kubernetes/pkg/scheduler"\n'),
    # A test that is skipped half-way leaves goroutines behind; do not wait ten minutes for them.
    Edit(
        "test/integration/framework/goleak.go",
        "instead of",
        "\ttimeout := 600 * time.Second\n",
        "\ttimeout := 5 * time.Second\n",
    ),
    # The tests of daemon sets make their scheduler without the helpers of the others.
    Edit(
        DAEMONS,
        "after",
        "\t\tprofile.NewRecorderFactory(eventBroadcaster),\n",
        "\t\tscheduler.WithKubeConfig(config),\n",
    ),
    Edit(DAEMONS, "instead of", "\tgo sched.Run(tCtx)\n", "\tsched.Start(tCtx)\n"),
    # The queue is inside the program; what comes of it can be seen from outside (go/queueing_external.go).
    Edit(QUEUE, "before", "\ttestCtx.Scheduler.SchedulingQueue.Run(logger)\n", "\tif !scheduler.External() {\n\t"),
    Edit(
        QUEUE,
        "instead of",
        "\tdefer testCtx.Scheduler.SchedulingQueue.Close()\n",
        "\t\tdefer testCtx.Scheduler.SchedulingQueue.Close()\n\t}\n",
    ),
    Edit(
        QUEUE,
        "before",
        "\tswitch tt.ExpectedInitialRejectingPhase {\n",
        "\tif scheduler.External() {\n\t\trunExternal(t, tt, testCtx)\n\t\treturn\n\t}\n",
    ),
)

# Go files of ours, and where they are put.
ADDED = {
    "pkg/scheduler/external.go": GO / "external_scheduler.go",
    "test/integration/scheduler/queueing/external.go": GO / "queueing_external.go",
}

# Below these folders tests start the scheduler with `go …Run`. `Start` also waits until the program has read the
# cluster: otherwise pods that a test makes one after the other come to the program as one list, ordered by name.
STARTING = ("test/integration/scheduler", "test/integration/volumescheduling", "test/integration/util")
_RUN = re.compile(r"\bgo (test\w+)\.Scheduler\.Run\(")


def waiting_starts(source: str) -> str:
    return _RUN.sub(r"\1.Scheduler.Start(", source)


def edited(originals: Mapping[str, str], edits: Iterable[Edit]) -> dict[str, str]:
    """Return the texts of files after all edits; the text of a file by its name."""
    found = dict(originals)
    for edit in edits:
        found[edit.file] = edit.apply(found[edit.file])
    return found
