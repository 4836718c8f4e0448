"""Programs: they read files and sockets, connect the packages below, and print."""
