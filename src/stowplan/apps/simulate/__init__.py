"""`stowplan simulate`: runs of `stowplan.simulation` with files, progress on a terminal, and a summary."""
