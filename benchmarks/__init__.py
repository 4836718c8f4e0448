"""How fast the scheduler decides, in memory; `python -m benchmarks` runs it all. See README.md beside this file."""
