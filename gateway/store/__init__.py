"""Persistence: the only place that speaks SQL. Fills the ports of `mcp.sessions` and `mcp.conversations`.

Importing this package loads nothing; `memory`, `values` and `faults` never load SQLAlchemy.
"""
