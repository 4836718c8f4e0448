"""Programs: they read files and sockets, wire the rooms together and print. Wiring only."""
