"""Harnesses: what an agent or a connection is, may use and is told. Definitions are Markdown files."""
