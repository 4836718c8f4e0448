"""The event loop that the wire runs in: uvloop's, which takes about a fifth off a request's CPU, or Python's own.

with asyncio.Runner(loop_factory=loops.new) as runner:
    runner.run(main())
"""

from __future__ import annotations

import asyncio


def new() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
