"""The place of DynamoDB, and the credentials of calls to it.

In a Lambda function, AWS's own variables name both, and botocore is not imported. Elsewhere
botocore finds them: by a profile, a configuration file, a role of a container or a machine.
Botocore also sends the requests if they have to go through a proxy, or if the environment names its
own authorities for TLS.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from duetick.domain.errors import InvalidStoreUrl
from duetick.network.sigv4 import Credentials, CredentialsSource
from duetick.stores.dynamodb.service import JsonService, Service, SignedPosts

NO_REGION: Final = (
    "No region is set: write dynamodb://table?region=eu-west-1, or set AWS_DEFAULT_REGION."
)

_ENDS: Final = {
    "cn-": "amazonaws.com.cn",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "us-isof-": "csp.hci.ic.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "eusc-": "amazonaws.eu",
}
"""The ends of names in the partitions of AWS, by the beginnings of their regions."""

_OF_BOTOCORE: Final = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_ACCOUNT_ID_ENDPOINT_MODE",
)
"""Variables that only botocore knows how to follow."""

_ON_THE_WAY: Final = (
    *("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"),
    *("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
)
"""Variables of proxies, and of authorities for TLS."""

_HOSTS_OF_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """The address of DynamoDB in a region, and the credentials of its caller."""

    url: str
    region: str
    credentials: CredentialsSource


def connect(
    region: str | None, endpoint: str | None, environment: Mapping[str, str] | None = None
) -> Service:
    """Open the way to DynamoDB in a region, or at an endpoint. Nothing is sent yet."""
    env = os.environ if environment is None else environment
    if _goes_through_botocore(endpoint or _find_endpoint(env), env):
        from duetick.stores.dynamodb.botocore_service import open_client

        return open_client(region, endpoint)
    place = find_place(region, endpoint, env)
    return JsonService(SignedPosts(place.url, place.region, place.credentials))


def find_place(region: str | None, endpoint: str | None, env: Mapping[str, str]) -> ServicePlace:
    """Return the place as the environment says; if it does not, as botocore finds it."""
    region = region or env.get("AWS_DEFAULT_REGION") or env.get("AWS_REGION") or None
    credentials = _credentials(env)
    if region and credentials and not _asks_botocore(env):
        return ServicePlace(endpoint or _find_endpoint(env) or url_of(region), region, credentials)
    from duetick.stores.dynamodb.botocore_service import ask_place

    return ask_place(region, endpoint)


def url_of(region: str) -> str:
    """Return the address of DynamoDB in a region."""
    if not re.fullmatch("[a-z0-9-]{1,63}", region):
        raise InvalidStoreUrl(f"{region[:80]!r} is no region of AWS, such as eu-west-1.")
    end = next((end for start, end in _ENDS.items() if region.startswith(start)), "amazonaws.com")
    return f"https://dynamodb.{region}.{end}"


def is_of_this_machine(endpoint: str | None) -> bool:
    """Return True for DynamoDB Local or its like on this machine: it accepts any credentials."""
    try:
        return urlsplit(endpoint or "").hostname in _HOSTS_OF_THIS_MACHINE
    except ValueError:  # it is no address, which whoever connects says
        return False


def _find_endpoint(env: Mapping[str, str]) -> str | None:
    if env.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    return env.get("AWS_ENDPOINT_URL_DYNAMODB") or env.get("AWS_ENDPOINT_URL") or None


def _credentials(env: Mapping[str, str]) -> CredentialsSource | None:
    """Return a source that reads the variables at each call: Lambda renews them there."""
    if not (env.get("AWS_ACCESS_KEY_ID") and env.get("AWS_SECRET_ACCESS_KEY")):
        return None

    def read() -> Credentials:
        token = env.get("AWS_SESSION_TOKEN") or None
        return Credentials(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], token)

    return read


def _asks_botocore(env: Mapping[str, str]) -> bool:
    """Return True if more than the variables read here may say where DynamoDB is."""
    file = env.get("AWS_CONFIG_FILE") or "~/.aws/config"
    return any(env.get(name) for name in _OF_BOTOCORE) or os.path.isfile(os.path.expanduser(file))


def _goes_through_botocore(endpoint: str | None, env: Mapping[str, str]) -> bool:
    return any(env.get(name) for name in _ON_THE_WAY) and not is_of_this_machine(endpoint)
