"""Clusters in virtual time: an engine and an embedded API server in one process, without HTTP and without a clock."""
