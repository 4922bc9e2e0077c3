"""The settings of a deployment: its environment variables, read once and checked."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from duetick.domain.errors import ConfigurationError
from duetick.domain.schedule import LARGEST_INPUT
from duetick.runtime.secrets import read_secret

LONGEST_LOOK_AHEAD: Final = 600_000
QUEUE_LOOK_AHEAD: Final = 120_000
"""The look-ahead of a queue, unless another one is set: it has none without."""

LOCAL_QUEUE: Final = "local"
"""The queue of the local stack, in its own process. Any other queue is an address of SQS."""

LONGEST_DAYS: Final = 365
"""See `domain.retention`, which a start without a purge does not load."""

DispatchAuth = Literal["iam", "secret"]
GoneFlows = Literal["die", "pause"]
TriggerKind = Literal["tick", "managed"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a deployment. `region` is AWS_REGION; others are DUETICK_<NAME>."""

    store: str
    store_secret_arn: str
    owner_store: str
    owner_secret_arn: str
    functions_secret_arn: str
    api_url: str
    api_address: str
    flows: str
    row_flow: str
    deployment: str
    dispatch_auth: DispatchAuth
    dispatch_secret: str
    dispatch_secret_arn: str
    dispatch_function: str
    allowed_origin: str
    user_clients: frozenset[str]
    look_ahead: int
    queue: str
    dead_packs: str
    fan_out: int
    memory_mb: int
    log_successes: int
    region: str
    local: bool
    quota_schedules: int
    quota_gap_seconds: int
    tick_seconds: int
    quota_input_bytes: int
    quota_runs: int
    quota_writes: int
    quota_jobs: int
    gone_flows: GoneFlows
    verified_per_hour: int
    retention_days: int
    retention_dead_days: int
    retention_by_flow: str
    witness: str
    event_bus: str
    trigger: TriggerKind
    agents: bool
    flow_settings: str
    flow_settings_secret: str
    flow_settings_secret_arn: str

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read the environment. Raise ConfigurationError for a missing or wrong variable."""
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
        gone = env.get("DUETICK_GONE_FLOWS", "die")
        if gone not in ("die", "pause"):
            raise ConfigurationError(f"DUETICK_GONE_FLOWS is die or pause, not {gone!r}.")
        trigger = env.get("DUETICK_TRIGGER", "tick")
        if trigger not in ("tick", "managed"):
            raise ConfigurationError(f"DUETICK_TRIGGER is tick or managed, not {trigger!r}.")
        secret = env.get("DUETICK_DISPATCH_SECRET", "")
        queue = env.get("DUETICK_QUEUE", "")
        ahead = _number(
            env, "DUETICK_LOOK_AHEAD", 0, LONGEST_LOOK_AHEAD, "milliseconds, from 0 (off)"
        )
        return cls(
            store=store,
            store_secret_arn=env.get("DUETICK_STORE_SECRET_ARN", ""),
            owner_store=env.get("DUETICK_OWNER_STORE", ""),
            owner_secret_arn=env.get("DUETICK_OWNER_SECRET_ARN", ""),
            functions_secret_arn=env.get("DUETICK_FUNCTIONS_SECRET_ARN", ""),
            api_url=env.get("DUETICK_API_URL", ""),
            api_address=env.get("DUETICK_API_ADDRESS", ""),
            flows=env.get("DUETICK_FLOWS", "flows"),
            row_flow=env.get("DUETICK_ROW_FLOW", ""),
            deployment=env.get("DUETICK_DEPLOYMENT", ""),
            dispatch_auth=cast("DispatchAuth", auth),
            dispatch_secret=read_secret(secret) if secret else "",
            dispatch_secret_arn=env.get("DUETICK_DISPATCH_SECRET_ARN", ""),
            dispatch_function=env.get("DUETICK_DISPATCH_FUNCTION", ""),
            allowed_origin=env.get("DUETICK_ALLOWED_ORIGIN", ""),
            user_clients=frozenset(filter(None, env.get("DUETICK_USER_CLIENTS", "").split(","))),
            look_ahead=(ahead or QUEUE_LOOK_AHEAD) if queue else ahead,
            queue=queue,
            fan_out=_number(env, "DUETICK_FAN_OUT", 8, 100),
            log_successes=_number(
                env, "DUETICK_LOG_SUCCESSES", 0 if queue else 100, 100, "a percentage from 0"
            ),
            memory_mb=_number(env, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", 512, 10_240),
            dead_packs=env.get("DUETICK_DEAD_PACKS", ""),
            region=env.get("AWS_REGION", env.get("AWS_DEFAULT_REGION", "")),
            local=env.get("DUETICK_LOCAL") == "1",
            quota_schedules=_number(env, "DUETICK_QUOTA_SCHEDULES", 100, 1_000_000),
            quota_gap_seconds=_number(env, "DUETICK_QUOTA_GAP_SECONDS", 60, 86_400),
            tick_seconds=_number(env, "DUETICK_TICK_SECONDS", 60, 86_400),
            quota_input_bytes=_number(
                env, "DUETICK_QUOTA_INPUT_BYTES", LARGEST_INPUT, LARGEST_INPUT
            ),
            quota_runs=_number(env, "DUETICK_QUOTA_RUNS", 30, 1_000_000),
            quota_writes=_number(env, "DUETICK_QUOTA_WRITES", 120, 1_000_000),
            quota_jobs=_number(env, "DUETICK_QUOTA_JOBS", 1_000, 1_000_000),
            gone_flows=cast("GoneFlows", gone),
            verified_per_hour=_number(env, "DUETICK_VERIFIED_PER_HOUR", 1_000_000, 10_000_000),
            retention_days=_number(env, "DUETICK_RETENTION_DAYS", 30, LONGEST_DAYS),
            retention_dead_days=_number(env, "DUETICK_RETENTION_DEAD_DAYS", 90, LONGEST_DAYS),
            retention_by_flow=env.get("DUETICK_RETENTION_BY_FLOW", ""),
            witness=env.get("DUETICK_WITNESS", ""),
            event_bus=env.get("DUETICK_EVENT_BUS", ""),
            trigger=cast("TriggerKind", trigger),
            agents=env.get("DUETICK_AGENTS") == "true",
            flow_settings=env.get("DUETICK_FLOW_SETTINGS", ""),
            flow_settings_secret=env.get("DUETICK_FLOW_SETTINGS_SECRET", ""),
            flow_settings_secret_arn=env.get("DUETICK_FLOW_SETTINGS_SECRET_ARN", ""),
        )


def _number(
    env: Mapping[str, str], name: str, default: int, most: int, what: str = "a number from 0"
) -> int:
    text = env.get(name) or str(default)
    if not text.isdecimal() or int(text) > most:
        raise ConfigurationError(f"{name} is {what} to {most}; got {text[:20]!r}.")
    return int(text)


def lambda_credentials() -> tuple[str, str, str | None]:
    """Return access key, secret key and token: the runtime renews them in the environment."""
    env = os.environ
    return env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env.get("AWS_SESSION_TOKEN")
