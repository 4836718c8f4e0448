"""Sweeps: the same work many times, with other arguments, in many processes, and not again what is done already.

    runs ──► runner (processes of this machine, or a Dask cluster) ──► answers, as they come ──► journal
                └── worker process: reads the inputs, calls the function of the run

What a run does is a function of a module and plain arguments, so that it can be sent anywhere. It is done in a process
of its own kind, which may be killed: the run is done again.
"""
