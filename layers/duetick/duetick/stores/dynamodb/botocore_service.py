"""DynamoDB by botocore: the way to find its place and credentials, and to send through a proxy."""

from functools import cache
from typing import Any, Final

from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoRegionError,
    ParamValidationError,
)
from botocore.loaders import Loader, create_loader
from botocore.session import Session, get_session

from duetick.domain.errors import InvalidStoreUrl
from duetick.network.sigv4 import Credentials
from duetick.stores.dynamodb.place import NO_REGION, ServicePlace, is_of_this_machine
from duetick.stores.dynamodb.service import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    TRIES,
    Body,
    ServiceRefusal,
    ServiceSilent,
    read_date,
)

LOOK: Final = "Look at AWS_DEFAULT_REGION, AWS_PROFILE and AWS_ENDPOINT_URL."


class BotocoreService:
    """`Service` over a client of botocore."""

    def __init__(self, client: BaseClient) -> None:
        self._client = client
        self._names = {name: method for method, name in client.meta.method_to_api_mapping.items()}
        self._date = ""

    @property
    def date(self) -> int | None:
        """See `Service`."""
        return read_date(self._date)

    def call(self, operation: str, request: Body) -> dict[str, Any]:
        """See `Service`."""
        try:
            answer: dict[str, Any] = getattr(self._client, self._names[operation])(**request)
        except ClientError as error:
            told, meta = error.response["Error"], error.response["ResponseMetadata"]
            reasons = error.response.get("CancellationReasons", ())
            raise ServiceRefusal(
                operation, told["Code"], told["Message"], reasons, meta["HTTPStatusCode"]
            ) from error
        except ParamValidationError as error:
            raise ServiceRefusal(operation, "SerializationException", str(error)) from error
        except BotoCoreError as error:
            raise ServiceSilent(f"{operation}: {error}") from error
        self._date = answer.pop("ResponseMetadata")["HTTPHeaders"].get("date", "")
        return answer

    def close(self) -> None:
        """See `Service`."""
        self._client.close()


def open_client(region: str | None, endpoint: str | None) -> BotocoreService:
    """Return the service by a client that waits rarely and briefly, and keeps its connections."""
    return BotocoreService(_client(_session(endpoint), region, endpoint))


def ask_place(region: str | None, endpoint: str | None) -> ServicePlace:
    """Return the place of DynamoDB and the credentials that botocore finds. It renews them."""
    session = _session(endpoint)
    client = _client(session, region, endpoint)
    held = session.get_credentials()

    def read() -> Credentials:
        if held is None:
            raise ServiceRefusal("A request", "NoCredentials", "nobody is named to send it as")
        try:
            frozen = held.get_frozen_credentials()
        except BotoCoreError as error:
            raise ServiceSilent(f"no credentials were given: {error}") from error
        return Credentials(frozen.access_key or "", frozen.secret_key or "", frozen.token)

    client.close()
    return ServicePlace(client.meta.endpoint_url, client.meta.region_name, read)


def _session(endpoint: str | None) -> Session:
    session = get_session()
    session.register_component("data_loader", _loader())
    if is_of_this_machine(endpoint) and session.get_credentials() is None:
        session.set_credentials("local", "local")
    return session


def _client(session: Session, region: str | None, endpoint: str | None) -> BaseClient:
    config = Config(
        retries={"mode": "standard", "total_max_attempts": TRIES},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        max_pool_connections=32,
        tcp_keepalive=True,
    )
    try:
        return session.create_client(
            "dynamodb", region_name=region, endpoint_url=endpoint, config=config
        )
    except NoRegionError:
        raise InvalidStoreUrl(NO_REGION) from None
    except (BotoCoreError, ValueError) as error:
        raise InvalidStoreUrl(f"AWS cannot be called: {str(error).rstrip('.')}. {LOOK}") from error


@cache
def _loader() -> Loader:
    """Load the service's description once: it takes nine tenths of the time to make a client."""
    return create_loader()
