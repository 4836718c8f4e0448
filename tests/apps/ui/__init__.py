"""Tests of the pages of `stowplan ui`."""
