#!/usr/bin/python3 -sPB
"""/bin/stowplan, and under its second name /bin/kube-scheduler.

Operators and charts that run another scheduler's image call /bin/kube-scheduler with kube-scheduler's flags. Under
that name the program is `stowplan run`.

-s and -P: nothing is imported from a home or from the folder of this file. -B: the root filesystem is read-only, so
compiled files are made when the image is. PYTHONPATH is heeded, for policies that are mounted.
"""

import os
import sys

sys.path.insert(0, "/usr/lib/stowplan")  # before anything else of the same name

from stowplan.apps.cli import kube_scheduler, main

if __name__ == "__main__":
    name = os.path.basename(sys.argv[0])  # noqa: PTH119 (pathlib costs a start some milliseconds)
    kube_scheduler() if name == "kube-scheduler" else main(prog_name=name)
