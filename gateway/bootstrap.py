"""Wiring: settings in, every adapter out as one frozen value. HTTP, stdio and tests start from the same one."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from auth.authenticator import Anonymous, Authenticator
from auth.permissions import Layer, Mode
from gateway.apart import own_rules
from gateway.identity import server_info
from gateway.lifecycle import Lifecycle
from gateway.opening import Opening
from gateway.routes import RESULTS, ROUTES
from gateway.settings import Settings, SettingsError
from gateway.store.audit import SqlAudit
from gateway.store.changes import StoreChanges, record
from gateway.store.conversations import SqlConversations
from gateway.store.engine import Database, open_database
from gateway.store.faults import StoreUnavailable
from gateway.store.grants import SqlGrants
from gateway.store.keys import SqlKeys
from gateway.store.principals import SqlPrincipals
from gateway.store.questions import SqlQuestions
from gateway.store.sessions import SqlSessions
from gateway.store.subscriptions import SqlSubscriptions
from gateway.store.tokens import SqlTokens
from gateway.version import VERSION
from mcp.announcing import Announcer
from mcp.calls import Performer
from mcp.catalogue import Catalogue, offer_of, standard_catalogue
from mcp.consent import Consent
from mcp.flight import Flight
from mcp.harness import registry
from mcp.harness.definition import Harness
from mcp.harness.frontmatter import HarnessError
from mcp.harness.watch import Watch
from mcp.held import HeldSubscriptions
from mcp.hub import Hub
from mcp.live import Sessions
from mcp.offering import Offered, Offering
from mcp.pending import Pending
from mcp.protocol.engine import Engine
from mcp.rates import Budget
from mcp.recording import Recorder
from mcp.sessions import SessionStore
from mcp.subscriptions import Subscriptions
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import SandboxStep, Shell, probe_shell
from telemetry.audit import AuditTrail
from telemetry.metrics import Metrics
from telemetry.tracing import Tracing

if TYPE_CHECKING:
    from gateway.oidc import Oidc

_log: Final = logging.getLogger("superpi.start")


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a transport needs, and the way to close it. Nothing of it works before the `opening` is done."""

    settings: Settings
    offering: Offering
    announcer: Announcer
    session_store: SessionStore
    lifecycle: Lifecycle
    database: Database
    tokens: SqlTokens
    principals: SqlPrincipals
    metrics: Metrics
    opening: Opening
    oidc: Oidc | None

    async def close(self) -> None:
        """End what runs, write what is owed, and let go of the database."""
        await self.lifecycle.close()
        await self.database.close()


async def build(settings: Settings, *, catalogue: Catalogue | None = None, local: bool = False) -> Services:
    """Load the harnesses, find the sandbox, and put all of it together, over a database that may be away.

    `local` is whether the caller is the machine's own user, as over stdio. Raises SettingsError for what an
    operator has to mend, StoreUnavailable for a URL at which there can be no database.
    """
    harnesses = _harnesses(settings)
    own = catalogue or standard_catalogue(harnesses[0], settings.limits)
    database = _database(settings)
    hub = Hub(_utc_now)
    subscriptions = Subscriptions(HeldSubscriptions() if local else SqlSubscriptions(database), hub)
    principals = SqlPrincipals(database, record)
    oidc = _oidc(settings, principals)
    lifecycle, session_store, tokens = _lifecycle(settings, database, hub, subscriptions, oidc)
    performer = _performer(settings, own, harnesses, database, lifecycle, local=local)
    offering = Offering(Offered(Engine(offer_of(own, server_info()), ()), performer), hub.tell)
    lifecycle.watch = _watch(settings, offering) if catalogue is None else None
    admit = partial(_admit, settings, offering, lifecycle, local=local)
    return Services(
        settings,
        offering,
        Announcer(subscriptions),
        session_store,
        lifecycle,
        database,
        tokens,
        principals,
        performer.recorder.metrics,
        Opening(settings.store_url, settings.migrate, database, lifecycle.readiness, admit),
        oidc,
    )


def _performer(
    settings: Settings,
    own: Catalogue,
    harnesses: tuple[registry.Registry, Harness],
    database: Database,
    lifecycle: Lifecycle,
    *,
    local: bool,
) -> Performer:
    """What performs effects; `harnesses` are all of them, and the one of connections that ask for none."""
    return Performer(
        catalogue=own,
        tools={tool.spec.name: tool for tool in own.tools},
        harnesses=harnesses[0],
        default_harness=harnesses[1],
        workspace=Workspace(settings.workspace[0], settings.workspace[1:]),
        shell=_shell(settings, local=local),
        limits=settings.limits,
        conversations=SqlConversations(database),
        remote_mode=settings.remote_mode,
        anonymous_mode=settings.remote_mode if settings.is_loopback else Mode.READ_ONLY,
        recorder=Recorder(lifecycle.trail, _metrics(own, lifecycle)),
        consent=Consent(SqlGrants(database), _utc_now),
        hub=lifecycle.hub,
        subscriptions=lifecycle.subscriptions,
        rules=own_rules(settings),
    )


def _watch(settings: Settings, offering: Offering) -> Watch | None:
    """What takes a team's harnesses anew when its folder changes; None without one."""
    if settings.harness_dir is None:
        return None

    def take(harnesses: registry.Registry) -> None:
        default = harnesses.get(settings.harness)
        assert default is not None  # noqa: S101 - the watch requires it
        catalogue = standard_catalogue(harnesses, settings.limits)
        performer = replace(
            offering.current.performer, catalogue=catalogue, harnesses=harnesses, default_harness=default
        )
        offering.change(offer_of(catalogue, server_info()), performer)

    return Watch(settings.harness_dir, offering.current.performer.harnesses, take, required=settings.harness)


async def _admit(settings: Settings, offering: Offering, lifecycle: Lifecycle, *, local: bool) -> None:
    """What needs the database once it is there. Over connections of its own: the door stays closed until it is done."""
    own = open_database(settings.store_url, readers=1, writers=1, seconds=settings.database_seconds)
    try:
        if not local and _may_be_open_to_all(settings) and not await SqlTokens(own, record).ever_any():
            raise SettingsError(
                f"SUPERPI_HOST: {settings.host} can be reached from other machines, and no token was made yet, so "
                "anybody could call. Make one with 'superpi token create --principal local:NAME', or set "
                "SUPERPI_HOST=127.0.0.1."
            )
        offering.take_keys(await SqlKeys(own).signing_key("cursor"))
    finally:
        await own.close()
    await lifecycle.start()


def _may_be_open_to_all(settings: Settings) -> bool:
    """Whether strangers could call as long as there is no token, and nobody said that they may (case C01)."""
    return not settings.is_loopback and settings.anonymous is Anonymous.AUTO and settings.oidc_issuer is None


def _anonymous(settings: Settings) -> Anonymous:
    """With an issuer there is a way to a token, so nobody is let in without one unless the operator says so."""
    has_issuer = settings.oidc_issuer is not None
    return Anonymous.NEVER if has_issuer and settings.anonymous is Anonymous.AUTO else settings.anonymous


def _oidc(settings: Settings, principals: SqlPrincipals) -> Oidc | None:
    """The issuer, where there is one: only who has one loads what judges its tokens."""
    if settings.oidc_issuer is None:
        return None
    from gateway.oidc import configured

    return configured(settings, settings.oidc_issuer, principals)


def _lifecycle(
    settings: Settings, database: Database, hub: Hub, subscriptions: Subscriptions, oidc: Oidc | None
) -> tuple[Lifecycle, SessionStore, SqlTokens]:
    """What lives as long as the process, over one database."""
    changes = StoreChanges(
        database, settings.store_url, listen_url=settings.listen_url, seconds=settings.database_seconds
    )
    judge, challenges, keyring = (None,) * 3 if oidc is None else (oidc.judge, oidc.challenges, oidc.keyring)
    tokens = SqlTokens(database, record)
    session_store = SqlSessions(database)
    flight = Flight()
    sessions = Sessions(
        session_store,
        _utc_now,
        busy=flight.busy,
        idle=timedelta(seconds=settings.session_idle_seconds),
        most=settings.sessions_per_principal,
    )
    flight.on_landed = sessions.landed
    lifecycle = Lifecycle(
        sessions,
        flight,
        hub,
        Pending(_utc_now, SqlQuestions(database), patience=timedelta(seconds=settings.http.ask_seconds)),
        subscriptions,
        SqlGrants(database),
        Authenticator(tokens, changes, _utc_now, anonymous=_anonymous(settings), issued=judge, challenges=challenges),
        changes,
        AuditTrail(SqlAudit(database), away=StoreUnavailable),
        Tracing(settings.otlp_endpoint, version=VERSION),
        keyring=keyring,
    )
    return lifecycle, session_store, tokens


def _metrics(catalogue: Catalogue, lifecycle: Lifecycle) -> Metrics:
    metrics = Metrics(
        routes=ROUTES,
        tools=[tool.spec.name for tool in catalogue.tools],
        layers=[layer.value for layer in Layer],
        credentials=RESULTS,
        budgets=Budget,
        version=VERSION,
    )
    metrics.watch_audit(lifecycle.trail)
    metrics.watch("superpi_calls_in_flight", lambda: len(lifecycle.flight))
    metrics.watch("superpi_sessions", lambda: len(lifecycle.sessions))
    return metrics


def _database(settings: Settings) -> Database:
    database = open_database(
        settings.store_url,
        readers=settings.database_readers,
        writers=settings.database_writers,
        seconds=settings.database_seconds,
        wait=settings.database_wait_seconds,
        unseen=True,
    )
    database.shut()
    if settings.otlp_endpoint is not None:
        database.observe()
    return database


def _harnesses(settings: Settings) -> tuple[registry.Registry, Harness]:
    """The harnesses, and the one of connections that ask for none."""
    try:
        harnesses = registry.load(settings.harness_dir)
    except HarnessError as error:
        raise SettingsError(f"SUPERPI_HARNESS_DIR: {error}") from None
    default = harnesses.get(settings.harness)
    if default is None:
        known = ", ".join(harnesses.ids)
        raise SettingsError(f"SUPERPI_HARNESS: there is no harness {settings.harness!r}; there are {known}")
    return harnesses, default


def _shell(settings: Settings, *, local: bool) -> Shell:
    shell = probe_shell(
        settings.limits,
        allow_unsandboxed=settings.sandbox == "off",
        local=local,
        private=(settings.data_dir,),
    )
    bare = shell.step in (SandboxStep.UNSANDBOXED, SandboxStep.UNAVAILABLE)
    _log.log(logging.WARNING if bare else logging.INFO, "sandbox: %s. %s", shell.step.value, shell.why)
    return shell


def _utc_now() -> datetime:
    return datetime.now(UTC)
