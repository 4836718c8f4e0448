"""The client side of the wire: what a server says becomes changes, what the engine wants becomes requests."""
