"""The workspace tools: one module a tool, each with its data for clients and the function that runs it."""
