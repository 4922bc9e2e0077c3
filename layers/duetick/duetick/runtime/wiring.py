"""What a function needs, made once for each sandbox from the settings.

Each part is imported where it is made: a tick needs neither flows nor dispatch, and starts without.
"""

import time
from functools import cache
from typing import TYPE_CHECKING, Protocol

from duetick.ports import Store, Transport
from duetick.runtime.settings import Settings, lambda_credentials
from duetick.stores import open_store

if TYPE_CHECKING:
    from types import ModuleType

    from duetick.core.accepting import Quotas
    from duetick.core.answers import Answer
    from duetick.core.calls import Request
    from duetick.core.dispatch import Dispatcher
    from duetick.core.flows import Flow, Flows
    from duetick.domain.schedule import Occurrence
    from duetick.runtime.secrets import Guard, SecretSource
    from duetick.transports.http import Authorize, Headers


class LambdaContext(Protocol):
    """As much of the runtime's context as is used."""

    def get_remaining_time_in_millis(self) -> int:
        """Until the runtime ends the invocation."""


@cache
def settings() -> Settings:
    """The environment's."""
    return Settings.read()


@cache
def store() -> Store:
    """The store at DUETICK_STORE."""
    chosen = settings()
    looks_ahead = chosen.look_ahead > 0
    if chosen.store_secret_arn:
        from duetick.runtime.database_password import open_with_secret

        return open_with_secret(chosen.store, chosen.store_secret_arn, look_ahead=looks_ahead)
    return open_store(chosen.store, look_ahead=looks_ahead)


def migrate() -> None:
    """Bring the schema up to date: as its owner, where the functions connect as another."""
    if settings().owner_store:
        from duetick.runtime.owner import migrate_as_owner

        migrate_as_owner(settings())
    else:
        store().migrate()


@cache
def flows() -> "Flows":
    """Every flow of the package DUETICK_FLOWS."""
    import pkgutil
    from importlib import import_module

    from duetick.core.flows import Flow, Flows
    from duetick.domain.errors import ConfigurationError

    package = import_module(settings().flows)
    names = [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    found: dict[str, Flow] = {}
    for module in [package, *map(import_module, names)]:
        for flow in _flows_of(module, Flow):
            if found.setdefault(flow.name, flow) is not flow:
                raise ConfigurationError(
                    f"Two flows are called {flow.name!r}; the second is in {module.__name__}. "
                    "Give one of them another name."
                )
    return Flows(found)


def _flows_of(module: "ModuleType", kind: "type[Flow]") -> "list[Flow]":
    return [value for value in vars(module).values() if isinstance(value, kind)]


@cache
def quotas() -> "Quotas":
    """What a user may have."""
    from duetick.core.accepting import Quotas

    chosen = settings()
    return Quotas(
        schedules=chosen.quota_schedules,
        gap_seconds=chosen.quota_gap_seconds,
        input_bytes=chosen.quota_input_bytes,
        runs_a_minute=chosen.quota_runs,
        tick_seconds=chosen.tick_seconds,
    )


@cache
def dispatcher() -> "Dispatcher":
    """Dispatch, with the caller's authentication as the settings say."""
    from duetick.core.dispatch import Dispatcher
    from duetick.runtime.background import in_thread, invoke
    from duetick.runtime.telemetry import record_settled

    return Dispatcher(
        store(),
        flows(),
        authenticate,
        store().now,
        enqueue=in_thread(_run_queued) if settings().local else invoke,
        on_settled=record_settled,
        quotas=quotas(),
    )


def _run_queued(request: "Request") -> "Answer":
    return dispatcher().run_queued(request)


@cache
def secrets() -> "SecretSource":
    """The live secrets, from Secrets Manager or the environment."""
    from duetick.runtime.secrets import given, kept_in_secrets_manager

    chosen = settings()
    if chosen.dispatch_secret_arn:
        return kept_in_secrets_manager(chosen.dispatch_secret_arn)
    return given(chosen.dispatch_secrets)


@cache
def guard() -> "Guard":
    """Who may dispatch in secret mode."""
    from duetick.runtime.secrets import Guard

    return Guard(secrets())


def authenticate(request: "Request") -> bool:
    """In IAM mode the gateway has refused everyone else; in secret mode the secret tells."""
    if settings().dispatch_auth == "iam":
        return True
    return guard().admits(request.headers.get("authorization", ""))


@cache
def transport() -> Transport:
    """HTTP to the dispatch API, signed or with the secret."""
    from duetick.transports.http import HttpTransport, bearer

    chosen = settings()
    authorize = _signed(chosen.region) if chosen.dispatch_auth == "iam" else bearer(secrets())
    return HttpTransport(chosen.api_url, authorize, connect_to=chosen.api_address)


@cache
def runs() -> Transport:
    """For runs by hand: the dispatch function itself, where it is named."""
    if settings().dispatch_function:
        from duetick.runtime.invoking import InvokeTransport

        return InvokeTransport(settings().dispatch_function)
    return transport()


def observe(occurrence: "Occurrence", status: int) -> None:
    """Tell the flows' hooks of a delivery. The first one imports them: a tick that finds nothing
    due does without.
    """
    flows().observe(occurrence, status)


def _signed(region: str) -> "Authorize":
    from duetick.transports.sigv4 import Credentials, Signer

    signer = Signer(lambda: Credentials(*lambda_credentials()), region)

    def authorize(
        host: str, path: str, body: bytes, *, refused: "Headers | None" = None
    ) -> "Headers | None":
        """Signatures are of this minute: a new one would be refused as well."""
        now = time.time_ns() // 1_000_000
        return None if refused else signer.headers(host, path, body, now)

    return authorize
