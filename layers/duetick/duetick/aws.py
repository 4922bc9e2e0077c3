"""Clients of AWS services."""

from functools import cache
from typing import Any, TypeAlias

AwsClient: TypeAlias = Any
"""A client of botocore, whose methods are made at run time from the description of its service."""


@cache
def client_of(
    service: str, region: str | None = None, patience: float | None = None, tries: int = 1
) -> AwsClient:
    """Return the client of a service, made once for a process.

    With `patience`, in seconds, a call waits no longer for its answer, and is tried so often.
    botocore makes the client: boto3 would slow a cold start, and adds nothing here.
    """
    from botocore.config import Config
    from botocore.session import get_session

    config = None
    if patience is not None:
        config = Config(
            connect_timeout=2,
            read_timeout=patience,
            retries={"total_max_attempts": tries, "mode": "standard"},
        )
    return get_session().create_client(service, region_name=region, config=config)
