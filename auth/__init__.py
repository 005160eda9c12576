"""Judges: who asks, and what they may do. Pure; knows nothing of the protocol or the gateway."""
