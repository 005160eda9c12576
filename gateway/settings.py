"""Settings: one frozen tree, read from the environment once at start and handed down.

Every setting is an environment variable that starts with `SUPERPI_`; the groups `limits`, `http` and `rates` put two
underscores before the name of the number (`SUPERPI_LIMITS__TOOL_SECONDS`). docs/settings.md lists them all.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from auth.authenticator import Anonymous
from auth.permissions import Mode
from gateway import setting_faults
from gateway.reach import TOKEN_VARIABLE
from gateway.setting_faults import variable
from mcp.limits import HttpLimits, Limits, Rates

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
        raise ValueError(f"one of {', '.join(labels)}")
    return labels.get(value, value)


def _place(path: Path) -> Path:
    return path.expanduser().absolute()


def _folder(path: Path) -> Path:
    real = _place(path)
    if not real.is_dir():
        raise ValueError("a folder that there is")
    return real.resolve()


def _networks(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        try:
            ipaddress.ip_network(word)
        except ValueError:
            raise ValueError("addresses or networks like 10.0.0.7 or 10.0.0.0/8, separated by commas") from None
    return words


_Folder = Annotated[Path, AfterValidator(_folder)]
_FolderIfGiven = Annotated[_Folder | None, BeforeValidator(_given)]
_TextIfGiven = Annotated[str | None, BeforeValidator(_given)]
_FileIfGiven = Annotated[Annotated[Path, AfterValidator(_place)] | None, BeforeValidator(_given)]
_Secret = Annotated[SecretStr | None, BeforeValidator(_given)]
_Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


class _Environment(PydanticBaseSettingsSource):
    """The environment: of each field its own variable, of a group those of its members, and nothing else.

    What is no setting is not looked at, so it cannot end a start; `unknown` tells of it.
    """

    def __init__(self, settings: type[BaseSettings]) -> None:
        super().__init__(settings)
        self._given = {name.upper(): value for name, value in os.environ.items()}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """What the environment says of a field; None for nothing."""
        members = _members(field)
        if members is None:
            return self._given.get(variable(field_name)), field_name, False
        named = {member: self._given.get(variable(field_name, member)) for member in members}
        return {member: value for member, value in named.items() if value is not None} or None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """All that it says."""
        found = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not None}


class Settings(BaseSettings):
    """Everything an operator decides."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=True)

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; beyond loopback only with tokens.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    metrics_port: Annotated[int | None, BeforeValidator(_given)] = Field(
        None, ge=1, le=65535, description="Port of the metrics alone; without it they are on the same one."
    )
    workspace: Annotated[tuple[_Folder, ...], BeforeValidator(_paths), Field(min_length=1)] = Field(
        (Path(),),
        description="The workspace folder. Further folders after a colon are extra roots that only mode full reaches.",
    )
    data_dir: Annotated[Path, AfterValidator(_place)] = Field(
        default_factory=lambda: platformdirs.user_data_path("superpi", appauthor=False),
        description="Folder of the server's own database, unless it has a URL.",
    )
    database_url: _Secret = Field(
        None, description="Database to keep everything in, like postgresql://user:password@host/superpi."
    )
    database_listen_url: _Secret = Field(
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
    harness_dir: _FolderIfGiven = Field(None, description="Folder of a team's own harness files.")
    remote_mode: Annotated[Mode, BeforeValidator(_mode)] = Field(
        Mode.WORKSPACE_WRITE, description="Highest mode of calls over HTTP: read_only, workspace_write or full."
    )
    anonymous: Anonymous = Field(
        Anonymous.AUTO,
        description="Callers without a token: auto lets them in on loopback until a token was ever made, never and "
        "always say what they do. always beyond loopback is insecure, and reads only.",
    )
    public_url: _TextIfGiven = Field(
        None, description="Address that hosts connect to, without /mcp, like https://superpi.example."
    )
    oidc_issuer: _TextIfGiven = Field(
        None, description="OIDC issuer whose tokens count beside our own, exactly as its metadata names it."
    )
    oidc_keys_url: _TextIfGiven = Field(None, description="Where its keys are, if its metadata is not to be asked.")
    oidc_audience: _Words = Field(
        (), description="What its tokens have to be made for, one of these; without any, the public URL with /mcp."
    )
    oidc_algorithms: _Words = Field(("RS256", "ES256"), description="Algorithms that it may sign with.")
    oidc_scope_claim: _TextIfGiven = Field(None, description="Claim with the scopes; without it scope, else scp.")
    oidc_scopes: _Words = Field(("mcp:write",), description="Scopes that hosts are told to ask it for.")
    sandbox: Literal["auto", "off"] = Field(
        "auto", description="auto takes the first sandbox that works; off runs commands without one."
    )
    allowed_origins: _Words = Field(
        (), description="Origins of web pages that may call, besides loopback, separated by commas; * allows all."
    )
    allowed_hosts: _Words = Field(
        (), description="Host names that requests may name, besides loopback, separated by commas; * allows all."
    )
    trusted_proxies: Annotated[_Words, AfterValidator(_networks)] = Field(
        (), description="Addresses or networks of proxies whose X-Forwarded-For and -Proto count, separated by commas."
    )
    tls_cert: _FileIfGiven = Field(None, description="Certificate chain in PEM; with it the server speaks TLS.")
    tls_key: _FileIfGiven = Field(None, description="Its private key, unless it is in the same file.")
    tls_key_password: _Secret = Field(None, description="Password of that key, if it is encrypted.")
    tls_client_ca: _FileIfGiven = Field(
        None, description="Certificate authorities in PEM; with them every client has to show a certificate of theirs."
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
    otlp_endpoint: _TextIfGiven = Field(
        None, description="OpenTelemetry collector to send a span a request to, like http://collector:4318."
    )
    limits: Limits = Field(default_factory=Limits, description="Bounds of the tools.")
    http: HttpLimits = Field(default_factory=HttpLimits, description="Bounds of the HTTP transport.")
    rates: Rates = Field(default_factory=Rates, description="How much one caller may ask for in a while.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - all of these are pydantic's own signature
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What the command was told, then the environment."""
        return init_settings, _Environment(settings_cls)

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
        key = [] if self.tls_key_password is None else [self.tls_key_password.get_secret_value()]
        return (*urls, *filter(None, (urlsplit(url).password for url in urls)), *key)

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
        secret = {name for name, field in Settings.model_fields.items() if SecretStr in get_args(field.annotation)}
        found = error.errors(include_url=False)
        raise SettingsError("\n".join(setting_faults.sentence(fault, secret=secret) for fault in found)) from None


def unknown() -> list[str]:
    """A line on each variable of the environment that looks like a setting and is none."""
    return setting_faults.unknown(os.environ, {*variables(), TOKEN_VARIABLE})


def variables() -> dict[str, tuple[str, Any]]:
    """Every environment variable with its description and default."""
    found: dict[str, tuple[str, Any]] = {}
    for name, field in Settings.model_fields.items():
        members = _members(field)
        if members is None:
            found[variable(name)] = (field.description or "", field.get_default(call_default_factory=True))
            continue
        for member, item in members.items():
            found[variable(name, member)] = (f"{field.description} ", item.default)
    return found


def _members(field: FieldInfo) -> Mapping[str, Any] | None:
    """The members of a group by name; None of a field that is no group."""
    return getattr(field.annotation, "__dataclass_fields__", None)
