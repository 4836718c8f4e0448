"""How many files this process may open, and how many of them connections of others may take.

A client of the API server that gets no descriptor cannot open its watches again, so a part is always left to the
program itself: those who connect to us get the rest.
"""

from __future__ import annotations

import resource
from contextlib import suppress

RESERVE = 128  # descriptors for the program: about 30 for files, pipes and loops, the others for clients
MOST = 1 << 16  # more than any program needs: some tools visit each possible descriptor
FEWEST_CONNECTIONS = 16


def raise_limit() -> int:
    """Raise this process's soft limit of open files to the hard one; return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a sandbox may forbid it: then the limit stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return limit()


def limit() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if soft == resource.RLIM_INFINITY else soft


def for_connections(most: int) -> int:
    """Return how many connections of others this process can have, `most` at most."""
    return max(min(most, limit() - RESERVE), FEWEST_CONNECTIONS)
