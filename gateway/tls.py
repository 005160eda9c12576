"""TLS of our own: one context for the life of the listener, which takes a renewed certificate without a restart.

New handshakes get the new certificate, and connections that are open stay as they are. A pair that cannot be used is
told of in the log and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

from gateway.settings import Settings, SettingsError

_log: Final = logging.getLogger("superpi.tls")

#: Seconds between two looks at the files.
LOOK_EVERY: Final = 2.0

#: What tells one state of a file from another; a mounted secret is a link that is changed.
_State = tuple[int, int, int]


class Tls:
    """The context of a listener, and its files."""

    def __init__(self, cert: Path, key: Path, *, password: str, client_ca: Path | None) -> None:
        """Raises SettingsError for files that cannot be used."""
        self._cert = cert
        self._key = key
        self._password = password
        self.context = _context()
        self._states = self._look()
        try:
            self._load(self.context)
        except (OSError, ValueError) as error:
            raise SettingsError(f"SUPERPI_TLS_CERT, SUPERPI_TLS_KEY: {_words(error, cert, key)}") from None
        if client_ca is not None:
            try:
                self.context.load_verify_locations(client_ca)
            except (OSError, ValueError) as error:
                raise SettingsError(f"SUPERPI_TLS_CLIENT_CA: {_words(error, client_ca)}") from None
            self.context.verify_mode = ssl.CERT_REQUIRED

    @classmethod
    def of(cls, settings: Settings) -> Tls | None:
        """As the settings say; None where they name no certificate. Raises SettingsError."""
        cert = settings.tls_cert
        if cert is None:
            for name in ("tls_key", "tls_client_ca"):
                if getattr(settings, name) is not None:
                    raise SettingsError(f"SUPERPI_{name.upper()}: has no use without SUPERPI_TLS_CERT.")
            return None
        password = settings.tls_key_password
        return cls(
            cert,
            settings.tls_key or cert,
            password="" if password is None else password.get_secret_value(),
            client_ca=settings.tls_client_ca,
        )

    async def keep_current(self, every: float = LOOK_EVERY) -> None:
        """Take what is new in the files, until cancelled."""
        while True:
            await asyncio.sleep(every)
            self.renew()

    def renew(self) -> None:
        """Look once."""
        states = self._look()
        if states == self._states:
            return
        # Also where it cannot be used: it is told once, and looked at again when it changes.
        self._states = states
        try:
            # Not on the live one at first, which would be left with a certificate without its key.
            self._load(_context())
            self._load(self.context)
        except (OSError, ValueError) as error:
            _log.error("the renewed certificate is not used: %s", _words(error, self._cert, self._key))
        else:
            _log.info("the certificate was renewed")

    def _load(self, context: ssl.SSLContext) -> None:
        # Without a password, even an empty one, OpenSSL asks the terminal for that of an encrypted key.
        context.load_cert_chain(self._cert, self._key, lambda: self._password)

    def _look(self) -> tuple[_State | None, ...]:
        return tuple(_state(path) for path in (self._cert, self._key))


def _context() -> ssl.SSLContext:
    """A server's, from TLS 1.2 on (RFC 9325, section 3.1.1)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _state(path: Path) -> _State | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _words(error: Exception, *paths: Path) -> str:
    """What is wrong with the files, in words; OpenSSL's name a place in its source."""
    names = " and ".join(str(path) for path in dict.fromkeys(paths))
    match error:
        case ssl.SSLError(reason="KEY_VALUES_MISMATCH"):
            return f"the key in {paths[-1]} is not that of the certificate in {paths[0]}."
        case ssl.SSLError():
            return f"{names} must hold PEM that can be used, and a key that is not encrypted or whose password is set."
        case OSError():
            return f"{names} cannot be read: {error.strerror}."
        case _:
            return f"{names} cannot be used."
