"""Settings: one frozen tree, read from the environment once at start and handed down.

Every setting is an environment variable that starts with `SUPERPI_`; the groups `limits` and `http` put two
underscores before the name of the number (`SUPERPI_LIMITS__TOOL_SECONDS`). docs/settings.md lists them all.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from auth.authenticator import Anonymous
from auth.permissions import Mode
from mcp.limits import HttpLimits, Limits

PREFIX: Final = "SUPERPI_"
_NESTED: Final = "__"
_DAY: Final = 24 * 3600


class SettingsError(Exception):
    """A setting that cannot be used; the message has one line a fault, each naming the variable."""


def _paths(value: Any) -> Any:
    return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value


def _words(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _given(value: Any) -> Any:
    """A variable that is set to nothing, as templates do, is not set."""
    return value or None


def _mode(value: Any) -> Any:
    labels = {mode.label: mode for mode in Mode}
    if isinstance(value, str) and value not in labels:
        raise ValueError(f"must be one of {', '.join(labels)}")
    return labels.get(value, value)


def _folder(path: Path) -> Path:
    real = path.expanduser().absolute()
    if not real.is_dir():
        raise ValueError(f"{path} is not a folder")
    return real.resolve()


_Folder = Annotated[Path, AfterValidator(_folder)]
_SecretUrl = Annotated[SecretStr | None, BeforeValidator(_given)]
_Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]


class Settings(BaseSettings):
    """Everything an operator decides."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=_NESTED, frozen=True, extra="forbid", validate_default=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on; beyond loopback only with tokens.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    workspace: Annotated[tuple[_Folder, ...], NoDecode, BeforeValidator(_paths), Field(min_length=1)] = Field(
        (Path(),),
        description="The workspace folder. Further folders after a colon are extra roots that only mode full reaches.",
    )
    data_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("superpi", appauthor=False),
        description="Folder of the server's own database, unless it has a URL.",
    )
    database_url: _SecretUrl = Field(
        None, description="Database to keep everything in, like postgresql://user:password@host/superpi."
    )
    database_listen_url: _SecretUrl = Field(
        None, description="The same PostgreSQL without a pooler between, where notifications come through."
    )
    database_seconds: float = Field(5.0, gt=0, description="PostgreSQL must answer in this time, else 503.")
    database_wait_seconds: float = Field(3.0, gt=0, description="Longest wait for a connection to PostgreSQL.")
    database_readers: int = Field(4, ge=1, le=100, description="Connections that read at once.")
    database_writers: int = Field(4, ge=1, le=100, description="Connections to PostgreSQL that write at once.")
    migrate: Literal["auto", "check", "off"] = Field(
        "auto",
        description="At start: auto brings the schema up to date, check waits until it is, off does not look.",
    )
    harness: str = Field("super-pi-code", description="Harness of connections that ask for none.")
    harness_dir: _Folder | None = Field(None, description="Folder of a team's own harness files.")
    remote_mode: Annotated[Mode, BeforeValidator(_mode)] = Field(
        Mode.WORKSPACE_WRITE, description="Highest mode of calls over HTTP: read_only, workspace_write or full."
    )
    anonymous: Anonymous = Field(
        Anonymous.AUTO,
        description="Callers without a token: auto lets them in on loopback until a token was ever made, never and "
        "always say what they do. always beyond loopback is insecure, and reads only.",
    )
    sandbox: Literal["auto", "off"] = Field(
        "auto", description="auto takes the first sandbox that works; off runs commands without one."
    )
    allowed_origins: _Words = Field(
        (), description="Origins of web pages that may call, besides loopback, separated by commas; * allows all."
    )
    allowed_hosts: _Words = Field(
        (), description="Host names that requests may name, besides loopback, separated by commas; * allows all."
    )
    admin_body_bytes: int = Field(64 * 1024, ge=1, description="Largest request body of the administrative interface.")
    session_idle_seconds: int = Field(30 * _DAY, ge=1, description="A session ends this long after its last use.")
    sessions_per_principal: int = Field(1000, ge=1, description="Beyond it the principal's idlest session ends.")
    drain_seconds: float = Field(25.0, ge=0, description="How long running calls may take to finish at shutdown.")
    drain_delay_seconds: float = Field(
        0.0, ge=0, description="How long the listener stays open at shutdown, answering 503, for load balancers."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe record logged.")
    log_format: Literal["text", "json"] = Field("text", description="Form of the log on stderr.")
    otlp_endpoint: str | None = Field(
        None, description="OpenTelemetry collector to send a span a request to, like http://collector:4318."
    )
    limits: Limits = Field(default_factory=Limits, description="Bounds of the tools.")
    http: HttpLimits = Field(default_factory=HttpLimits, description="Bounds of the HTTP transport.")

    @property
    def store_url(self) -> str:
        """Where the server keeps its own data; may hold a password."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir / 'superpi.db'}"

    @property
    def listen_url(self) -> str:
        """Where notifications of changes come from; may hold a password."""
        return self.database_listen_url.get_secret_value() if self.database_listen_url else self.store_url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no log may show."""
        urls = [url.get_secret_value() for url in (self.database_url, self.database_listen_url) if url is not None]
        return (*urls, *filter(None, (urlsplit(url).password for url in urls)))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def load(**overrides: Any) -> Settings:
    """The settings of the environment, with `overrides` before them. Raises SettingsError."""
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("\n".join(_sentence(fault) for fault in error.errors(include_url=False))) from None


def unknown_variables(environment: list[str]) -> list[str]:
    """Variables that look like settings and are none: usually a typing error."""
    known = set(variables())
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known)


def variables() -> dict[str, tuple[str, Any]]:
    """Every environment variable with its description and default."""
    found: dict[str, tuple[str, Any]] = {}
    for name, field in Settings.model_fields.items():
        group = getattr(field.annotation, "__dataclass_fields__", None)
        if group is None:
            found[f"{PREFIX}{name.upper()}"] = (field.description or "", field.get_default(call_default_factory=True))
            continue
        for member, item in group.items():
            variable = f"{PREFIX}{name.upper()}{_NESTED}{member.upper()}"
            found[variable] = (f"{field.description} ", item.default)
    return found


def _sentence(fault: Any) -> str:
    variable = PREFIX + _NESTED.join(str(step).upper() for step in fault["loc"] if not isinstance(step, int))
    return f"{variable}: {fault['msg'].removeprefix('Value error, ')}"
