"""Readers of streams: bytes in, events out, ordered by time."""
