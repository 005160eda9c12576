"""Touches the world: contained paths, file I/O, search, processes and the sandbox around them."""
