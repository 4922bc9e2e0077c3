"""The list prices that `duetick costs` calculates with, and where AWS publishes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Architecture: TypeAlias = Literal["arm64", "x86_64"]

GB_SECOND: Final[Mapping[Architecture, float]] = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
PUBLISHED: Final = "for us-east-1 in November 2026"
SOURCES: Final[Mapping[str, str]] = {
    "lambda_gb_second": "lambda",
    "lambda_million": "lambda",
    "api_million": "api-gateway",
    "scheduler_million": "eventbridge",
    "queue_million": "sqs",
    "fair_queue_million": "sqs",
    "write_million": "dynamodb",
    "read_million": "dynamodb",
    "table_gb": "dynamodb",
    "table_backup_gb": "dynamodb",
    "log_gb": "cloudwatch",
    "metric": "cloudwatch",
    "alarm": "cloudwatch",
    "dashboard": "cloudwatch",
    "secret": "secrets-manager",
    "aurora_unit_hour": "rds/aurora",
    "aurora_io_million": "rds/aurora",
    "aurora_gb": "rds/aurora",
    "proxy_unit_hour": "rds/proxy",
    "endpoint_hour": "privatelink",
    "nat_hour": "vpc",
}
"""The page that publishes each price: https://aws.amazon.com/…/pricing/."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in dollars, as published at `SOURCES`, `PUBLISHED`."""

    lambda_gb_second: float = GB_SECOND["arm64"]
    lambda_million: float = 0.20
    api_million: float = 3.50
    scheduler_million: float = 1.00
    queue_million: float = 0.40
    fair_queue_million: float = 0.50
    write_million: float = 0.625
    read_million: float = 0.125
    table_gb: float = 0.25
    table_backup_gb: float = 0.20
    log_gb: float = 0.50
    metric: float = 0.30
    alarm: float = 0.10
    dashboard: float = 3.00
    secret: float = 0.40
    aurora_unit_hour: float = 0.12
    aurora_io_million: float = 0.20
    aurora_gb: float = 0.10
    proxy_unit_hour: float = 0.015
    endpoint_hour: float = 0.01
    nat_hour: float = 0.045


LISTED: Final = Prices()
"""The prices as published."""
