"""`stowplan what-if`: which pods would move, wait or be lost if a cluster were changed."""
