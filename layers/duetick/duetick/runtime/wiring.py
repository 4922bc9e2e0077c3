"""What a function needs, made once for each sandbox from the settings."""

import hmac
import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from duetick.core.dispatch import Dispatcher, Request
from duetick.core.flows import Flow, Flows
from duetick.domain.errors import ConfigurationError
from duetick.ports import Store, Transport
from duetick.runtime.settings import Settings, lambda_credentials
from duetick.stores import open_store

if TYPE_CHECKING:
    from duetick.transports.http import Authorize


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
    if chosen.store_secret_arn:
        from duetick.runtime.database_password import open_with_secret

        return open_with_secret(chosen.store, chosen.store_secret_arn)
    return open_store(chosen.store)


@cache
def flows() -> Flows:
    """Every flow of the package DUETICK_FLOWS."""
    package = import_module(settings().flows)
    found = _flows_of(package)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        found |= _flows_of(import_module(module.name))
    return Flows(found)


def _flows_of(module: ModuleType) -> dict[str, Flow]:
    return {value.name: value for value in vars(module).values() if isinstance(value, Flow)}


@cache
def dispatcher() -> Dispatcher:
    """Dispatch, with the caller's authentication as the settings say."""
    return Dispatcher(store(), flows(), authenticate, store().now)


def authenticate(request: Request) -> bool:
    """In IAM mode the gateway has refused everyone else; in secret mode the secret tells."""
    if settings().dispatch_auth == "iam":
        return True
    return knows_secret(request.headers.get("authorization", ""))


def knows_secret(header: str) -> bool:
    """Whether the header carries a live secret; without a configured one nobody does."""
    given = header.removeprefix("Bearer ").encode()
    known = [hmac.compare_digest(given, s.encode()) for s in settings().dispatch_secrets]
    return any(known)


@cache
def transport() -> Transport:
    """HTTP to the dispatch API, signed or with the secret."""
    from duetick.transports.http import HttpTransport, bearer

    chosen = settings()
    if chosen.dispatch_auth == "iam":
        authorize = _signed(chosen.region)
    elif chosen.dispatch_secrets:
        authorize = bearer(chosen.dispatch_secrets[0])
    else:
        raise ConfigurationError("Secret mode without a secret: set the dispatch secret.")
    return HttpTransport(chosen.api_url, authorize, connect_to=chosen.api_address)


def _signed(region: str) -> "Authorize":
    from duetick.transports.sigv4 import Credentials, Signer

    signer = Signer(lambda: Credentials(*lambda_credentials()), region)
    now = store().now
    return lambda host, path, body: signer.headers(host, path, body, now())
