"""`stowplan shadow`: beside another scheduler, what our configuration would have decided."""
