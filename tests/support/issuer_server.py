"""An issuer that answers over loopback as it is told to, and counts who asks. Threads, so that any test can use it."""

import json
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.issuer import document

DISCOVERY, KEYS = "/.well-known/openid-configuration", "/keys"


class IssuerServer:
    """`keys` are what it signs with now; `answers` has an answer by path: status, headers and body."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"
        self.asked = Counter()
        self.answers = {}
        self.away = threading.Event()
        self.metadata = {"issuer": self.url, "jwks_uri": self.url + KEYS}

    def serve(self, *keys):
        """Have these keys, and an answer that says so."""
        self.answers[DISCOVERY] = (200, {}, json.dumps(self.metadata).encode())
        self.answers[KEYS] = (200, {}, document(*keys))


@contextmanager
def issuer_server(*keys):
    """One that serves those keys, until the end."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            issuer.asked[self.path] += 1
            status, headers, body = issuer.answers.get(self.path, (404, {}, b""))
            if body is None:
                # Never: until the test is over.
                issuer.away.wait(30)
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            """Tests read no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer = IssuerServer(server.server_address[1])
    issuer.serve(*keys)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        issuer.away.set()
        server.shutdown()
        server.server_close()
        thread.join()
