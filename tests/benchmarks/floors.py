"""The floors: what answers the same bytes and does nothing else. A program of its own, that prints where it listens.

`python floors.py KIND BODIES`: KIND is a key of `FLOORS`, BODIES a JSON file of answers by the query they are asked
with. It knows nothing of the project, and uvicorn is set as the product sets it.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path

import uvicorn
import uvloop

BODIES = {}


async def bare_asgi(scope, receive, send):
    """The least that an ASGI application can do."""
    while (await receive()).get("more_body"):
        pass
    body = BODIES[scope["query_string"]]
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def bare_fastapi():
    """The least that a FastAPI route can do."""
    from fastapi import FastAPI, Request, Response

    app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False})

    @app.post("/mcp")
    async def answer(request: Request) -> Response:
        await request.body()
        return Response(BODIES[request.scope["query_string"]], media_type="application/json")

    return app


FLOORS = {"asgi": lambda: bare_asgi, "fastapi": bare_fastapi}


async def main(kind, bodies):
    """Serve until a signal."""
    BODIES.update({query.encode(): body.encode() for query, body in json.loads(Path(bodies).read_text()).items()})
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        FLOORS[kind](),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )
    sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
