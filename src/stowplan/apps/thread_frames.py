"""The frames of other threads: they may be read only while no garbage is collected.

Reading makes objects of frames, and that may start a collection in the middle of it. CPython 3.11 then holds the lock
of the list of threads: whoever starts a thread waits for it forever, and with them the whole program (gh-106883). And
what a collection calls, such as the callback of a weak reference, may let the other thread run on. Its frame may be
gone when the object of it is completed, and the process dies by a segmentation fault.
"""

from __future__ import annotations

from stowplan.objects.garbage_collection import paused as no_collection

__all__ = ["no_collection"]
