"""The cluster as arrays: nodes are rows, what decisions read is columns, what repeats is interned and counted once."""
