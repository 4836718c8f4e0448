"""Beside another scheduler: what would our configuration have decided about each pod? Start at `shadow`."""
