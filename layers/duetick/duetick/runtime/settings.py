"""The environment, read once and checked; nothing else reads it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from duetick.domain.errors import ConfigurationError

LONGEST_LOOK_AHEAD: Final = 600_000

DispatchAuth = Literal["iam", "secret"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a deployment is told. Each field is the variable DUETICK_<NAME>."""

    store: str
    store_secret_arn: str = ""
    api_url: str = ""
    api_address: str = ""
    flows: str = "flows"
    dispatch_auth: DispatchAuth = "iam"
    dispatch_secrets: tuple[str, ...] = ()
    dispatch_secret_arn: str = ""
    look_ahead: int = 0
    region: str = ""
    local: bool = False

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """From the environment; raise ConfigurationError naming what is missing."""
        env = os.environ if environment is None else environment
        store = env.get("DUETICK_STORE", "")
        if not store:
            raise ConfigurationError(
                "DUETICK_STORE is not set: the store's address, "
                "such as dynamodb://table or sqlite:///file.db."
            )
        auth = env.get("DUETICK_DISPATCH_AUTH", "iam")
        if auth not in ("iam", "secret"):
            raise ConfigurationError(f"DUETICK_DISPATCH_AUTH is iam or secret, not {auth!r}.")
        return cls(
            store=store,
            store_secret_arn=env.get("DUETICK_STORE_SECRET_ARN", ""),
            api_url=env.get("DUETICK_API_URL", ""),
            api_address=env.get("DUETICK_API_ADDRESS", ""),
            flows=env.get("DUETICK_FLOWS", "flows"),
            dispatch_auth=cast("DispatchAuth", auth),
            dispatch_secrets=tuple(filter(None, env.get("DUETICK_DISPATCH_SECRET", "").split())),
            dispatch_secret_arn=env.get("DUETICK_DISPATCH_SECRET_ARN", ""),
            look_ahead=_milliseconds(env, "DUETICK_LOOK_AHEAD"),
            region=env.get("AWS_REGION", env.get("AWS_DEFAULT_REGION", "")),
            local=env.get("DUETICK_LOCAL") == "1",
        )


def _milliseconds(env: Mapping[str, str], name: str) -> int:
    text = env.get(name) or "0"
    if not text.isdecimal() or int(text) > LONGEST_LOOK_AHEAD:
        raise ConfigurationError(
            f"{name} is milliseconds, from 0 (off) to {LONGEST_LOOK_AHEAD}; got {text[:20]!r}."
        )
    return int(text)


def lambda_credentials() -> tuple[str, str, str | None]:
    """The access key, secret key and token that the runtime keeps fresh in the environment."""
    env = os.environ
    return env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env.get("AWS_SESSION_TOKEN")
