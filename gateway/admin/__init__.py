"""The administrative interface: REST under `/admin/v1`, for those whose token has the scope admin.

One module a resource (`tokens`, `grants`), which holds its models and routes and nothing that another needs too.
What they share: who may come in (`access`), how a body is read (`requests`), what is refused and in which words
(`refusals`), and the OpenAPI document (`document`). `api` puts them together. No tool of MCP is reached from here.
"""
