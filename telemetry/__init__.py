"""Tells what happened: logs today, spans, metrics and audit beside them. Knows no other package."""
