"""Benchmarks of decisions in memory; `python -m benchmarks` runs all of them. See README.md beside this file."""
