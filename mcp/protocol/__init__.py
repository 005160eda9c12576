"""The protocol engine: pure functions over values. No clock, randomness, socket or file in here."""
