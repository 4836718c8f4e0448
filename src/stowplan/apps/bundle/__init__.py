"""`stowplan bundle`: what a maintainer needs to know about a running Stowplan, in one file without secrets."""
