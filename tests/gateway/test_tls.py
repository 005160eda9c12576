"""TLS of the server's own, on a real server: what is spoken, and how a renewed certificate is taken."""

import os
import socket
import ssl
import subprocess
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest
import trustme

from gateway.tls import LOOK_EVERY
from tests.support.raw_http import INITIALIZE
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: Seconds until a change of the files is felt: two looks, and a busy machine.
FELT = 2 * LOOK_EVERY + 5


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


class Files:
    """A certificate and its key in a folder of the server's, each replaced as a whole."""

    def __init__(self, place, authority):
        self.place, self.authority = place, authority
        self.cert, self.key = place / "tls.crt", place / "tls.key"

    def renew(self):
        """Its serial number afterwards."""
        issued = self.authority.issue_cert("127.0.0.1")
        self.put(issued.private_key_pem.bytes(), b"".join(blob.bytes() for blob in issued.cert_chain_pems))

    def put(self, key, cert):
        for path, content in ((self.key, key), (self.cert, cert)):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(content)
            fresh.replace(path)
        own(self.place)

    @property
    def settings(self):
        return {"SUPERPI_TLS_CERT": str(self.cert), "SUPERPI_TLS_KEY": str(self.key)}


@contextmanager
def secured(authority, **more):
    """A server that speaks TLS, and its files."""
    with folder() as workspace, folder() as home, folder() as place:
        files = Files(place, authority)
        files.renew()
        with serving(unprivileged(), workspace, home, **files.settings, **more) as server:
            yield server, files


@pytest.fixture(scope="module")
def running(authority):
    with secured(authority) as found:
        yield found


@pytest.fixture
def trust(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def serial(server, context):
    address = urlsplit(server.url)
    with (
        socket.create_connection((address.hostname, address.port), timeout=10) as sock,
        context.wrap_socket(sock, server_hostname=address.hostname) as secure,
    ):
        return secure.getpeercert()["serialNumber"]


def felt(condition):
    deadline = time.monotonic() + FELT
    while not condition():
        assert time.monotonic() < deadline, "it was not felt in time"
        time.sleep(0.1)


def test_the_endpoint_is_served_over_tls(running, trust):
    """And the browser is told to stay with it."""
    server, _ = running
    assert server.url.startswith("https://")
    with httpx.Client(verify=trust, trust_env=False) as http:
        answer = http.post(server.url, json=INITIALIZE)
        assert answer.status_code == 200
        probe = http.get(server.url.replace("/mcp", "/livez"))
    assert {one.headers["strict-transport-security"] for one in (answer, probe)} == {"max-age=31536000"}


def test_without_tls_nobody_is_told_to_stay_with_it():
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home) as server:
        assert "strict-transport-security" not in httpx.post(server.url, json=INITIALIZE, trust_env=False).headers


@pytest.mark.parametrize(
    ("version", "is_spoken"),
    [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_what_is_older_than_tls_1_2_is_not_spoken(running, trust, version, is_spoken):
    server, _ = running
    trust.set_ciphers("ALL:@SECLEVEL=0")
    trust.minimum_version = trust.maximum_version = version
    if is_spoken:
        assert serial(server, trust)
    else:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            serial(server, trust)


def test_plain_http_is_not_answered(running):
    server, _ = running
    with pytest.raises(httpx.TransportError):
        httpx.post(server.url.replace("https", "http"), json=INITIALIZE, trust_env=False)


def test_a_renewed_certificate_is_taken_and_no_connection_dropped(running, trust):
    server, files = running
    before = serial(server, trust)
    with httpx.Client(verify=trust, trust_env=False) as http:
        session = {"mcp-session-id": http.post(server.url, json=INITIALIZE).headers["mcp-session-id"]}
        files.renew()
        felt(lambda: serial(server, trust) != before)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answer = http.post(server.url, json=ping, headers=session)
        stream = answer.extensions["network_stream"].get_extra_info("ssl_object")
        assert (answer.status_code, stream.getpeercert()["serialNumber"]) == (200, before)


@pytest.mark.parametrize("fault", ["rubbish", "another's key", "nothing"])
def test_a_pair_that_cannot_be_used_changes_nothing(running, trust, authority, fault):
    """It is told of once, and a good one is taken after it."""
    server, files = running
    before, told = serial(server, trust), server.said.count("renewed certificate is not used")
    cert = files.cert.read_bytes()
    if fault == "rubbish":
        files.put(files.key.read_bytes(), b"-----BEGIN CERTIFICATE-----\nAAAA\n")
    elif fault == "nothing":
        files.cert.unlink()
    else:
        files.put(authority.issue_cert("127.0.0.1").private_key_pem.bytes(), cert)
    felt(lambda: server.said.count("renewed certificate is not used") > told)
    time.sleep(2 * LOOK_EVERY)
    assert server.said.count("renewed certificate is not used") <= told + 2
    assert serial(server, trust) == before
    files.renew()
    felt(lambda: serial(server, trust) != before)


def test_clients_have_to_show_a_certificate_where_that_is_asked(authority, trust):
    """Of one of these authorities, and of no other."""
    with folder() as place:
        clients = trustme.CA()
        clients.cert_pem.write_to_path(place / "clients.pem")
        own(place)
        with secured(authority, SUPERPI_TLS_CLIENT_CA=str(place / "clients.pem")) as (server, _):
            for shown in (None, trustme.CA()):
                if shown is not None:
                    shown.issue_cert("client@example").configure_cert(trust)
                with httpx.Client(verify=trust, trust_env=False) as http, pytest.raises(httpx.TransportError):
                    http.post(server.url, json=INITIALIZE)
            clients.issue_cert("client@example").configure_cert(trust)
            with httpx.Client(verify=trust, trust_env=False) as http:
                assert http.post(server.url, json=INITIALIZE).status_code == 200


def encrypted(files):
    """Encrypt the key as operators do."""
    plain = files.key.read_bytes()
    from cryptography.hazmat.primitives import serialization as forms

    key = forms.load_pem_private_key(plain, None)
    secret = forms.BestAvailableEncryption(b"canary-9d2")
    files.key.write_bytes(key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, secret))
    own(files.place)


def test_an_encrypted_key_is_used_with_its_password(authority, trust):
    """Which is in no log."""
    with folder() as workspace, folder() as home, folder() as place:
        files = Files(place, authority)
        files.renew()
        encrypted(files)
        settings = files.settings | {"SUPERPI_TLS_KEY_PASSWORD": "canary-9d2", "SUPERPI_LOG_LEVEL": "debug"}
        with serving(unprivileged(), workspace, home, **settings) as server:
            assert serial(server, trust)
            assert "canary-9d2" not in server.said


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no certificate", "SUPERPI_TLS_KEY: has no use without SUPERPI_TLS_CERT."),
        ("missing", "cannot be read: No such file or directory."),
        ("rubbish", "must hold PEM that can be used"),
        ("another's key", "is not that of the certificate in"),
        ("encrypted", "a key that is not encrypted or whose password is set."),
        ("no authorities", "SUPERPI_TLS_CLIENT_CA: "),
    ],
)
def test_what_cannot_be_used_at_the_start_ends_it_with_a_sentence(authority, fault, said):
    """Without asking a terminal for the password of a key."""
    launcher = unprivileged()
    with folder() as place:
        files = Files(place, authority)
        files.renew()
        settings = files.settings
        match fault:
            case "no certificate":
                del settings["SUPERPI_TLS_CERT"]
            case "missing":
                files.cert.unlink()
            case "rubbish":
                files.put(b"rubbish", files.cert.read_bytes())
            case "another's key":
                files.put(authority.issue_cert("127.0.0.1").private_key_pem.bytes(), files.cert.read_bytes())
            case "encrypted":
                encrypted(files)
            case "no authorities":
                settings["SUPERPI_TLS_CLIENT_CA"] = str(files.key)
        home = {"HOME": str(place), "SUPERPI_WORKSPACE": str(place), "SUPERPI_DATA_DIR": str(place / "data")}
        ran = subprocess.run(
            launcher.superpi("serve", "--port", "0"),
            env={**launcher.env, **home, **settings},
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (ran.returncode, ran.stdout, said in ran.stderr) == (2, "", True), ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert os.path.sep + "site-packages" not in ran.stderr
