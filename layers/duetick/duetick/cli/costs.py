"""What a deployment costs: counted units and measured durations times prices, all of them inputs.

Prices are in dollars, without any free tier. What was measured, `python -m tests.benchmarks.usage`
measures again, and bytes `python -m tests.benchmarks.storage`; what was counted,
`python -m tests.benchmarks.dynamodb_units` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Backend: TypeAlias = Literal["dynamodb", "aurora", "postgres"]
Architecture: TypeAlias = Literal["arm64", "x86_64"]
Lines: TypeAlias = dict[str, float]

BACKENDS: Final[tuple[Backend, ...]] = ("dynamodb", "aurora", "postgres")
MILLION: Final = 1_000_000
GB: Final = 1024**3
HOURS: Final = 730.5
DAYS: Final = HOURS / 24
"""Of a month, on average."""
GB_SECOND: Final[Mapping[Architecture, float]] = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
PUBLISHED: Final = "for us-east-1 in November 2026"
SOURCES: Final[Mapping[str, str]] = {
    "lambda_gb_second": "lambda",
    "lambda_million": "lambda",
    "api_million": "api-gateway",
    "scheduler_million": "eventbridge",
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
"""Where each price is published: https://aws.amazon.com/…/pricing/."""
SECRETS: Final = 2
"""On Aurora: the owner's password, and that of the user whom functions connect as."""
LOOK_AHEADS: Final = (60, 120)
"""Seconds that the template offers."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars, as `PUBLISHED` at `SOURCES`."""

    lambda_gb_second: float = GB_SECOND["arm64"]
    lambda_million: float = 0.20
    api_million: float = 3.50
    scheduler_million: float = 1.00
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


@dataclass(frozen=True, slots=True)
class Usage:
    """What is used. Units are counted and seconds, as billed at `memory_gb`, are measured, on
    DynamoDB, where both are more; kilobytes of log are measured.
    """

    tick_minutes: float = 1.0
    memory_gb: float = 0.5
    tick_seconds: float = 0.02
    tick_reads: float = 1.5
    tick_log_kb: float = 1.7
    fire_tick_seconds: float = 0.0045
    fire_dispatch_seconds: float = 0.020
    fire_writes: float = 6.1
    fire_reads: float = 2.0
    fire_log_kb: float = 1.8
    fire_ios: float = 2.0
    schedules: int = 100_000
    kept_days: float = 30.0
    schedule_item_bytes: float = 1_300
    fire_item_bytes: float = 350
    schedule_row_bytes: float = 1_400
    fire_row_bytes: float = 520
    plain_seconds: float = 0.005
    plain_log_kb: float = 0.6
    aurora_units: float = 0.5
    proxy_least_units: float = 8.0
    metrics: int = 14
    alarms: int = 11
    zones: int = 2
    endpoints: int = 0
    nat: bool = False


def at_rest(backend: Backend, usage: Usage = Usage(), prices: Prices = Prices()) -> Lines:
    """A month in which nothing fires."""
    ticks = _ticks(usage)
    lines = {
        "EventBridge Scheduler": ticks * prices.scheduler_million / MILLION,
        "Lambda, ticks": _lambda(ticks, usage.tick_seconds, usage, prices),
        "CloudWatch, logs": ticks * usage.tick_log_kb / 1024**2 * prices.log_gb,
        "CloudWatch, metrics": usage.metrics * prices.metric,
        "CloudWatch, alarms": usage.alarms * prices.alarm,
        "CloudWatch, dashboard": prices.dashboard,
        "NAT gateway": usage.nat * HOURS * prices.nat_hour,
        "Interface endpoints": usage.endpoints * usage.zones * HOURS * prices.endpoint_hour,
        **_database_at_rest(backend, ticks, usage, prices),
    }
    return {name: cost for name, cost in lines.items() if cost}


def _database_at_rest(backend: Backend, ticks: float, usage: Usage, prices: Prices) -> Lines:
    if backend == "dynamodb":
        return {"DynamoDB, reads": ticks * usage.tick_reads * prices.read_million / MILLION}
    if backend == "postgres":
        return {"Secrets Manager": prices.secret}
    units = max(usage.aurora_units, usage.proxy_least_units)
    return {
        "Aurora": usage.aurora_units * HOURS * prices.aurora_unit_hour,
        "RDS Proxy": units * HOURS * prices.proxy_unit_hour,
        "Secrets Manager": SECRETS * prices.secret,
    }


def per_million(backend: Backend, usage: Usage = Usage(), prices: Prices = Prices()) -> Lines:
    """A million fires more, the work of the action itself left out."""
    lines = {
        "API Gateway": prices.api_million,
        "Lambda, dispatch": _lambda(MILLION, usage.fire_dispatch_seconds, usage, prices),
        "Lambda, ticks": _seconds(MILLION * usage.fire_tick_seconds, usage, prices),
        "CloudWatch, logs": MILLION * usage.fire_log_kb / 1024**2 * prices.log_gb,
    }
    if backend == "dynamodb":
        lines["DynamoDB, writes"] = usage.fire_writes * prices.write_million
        lines["DynamoDB, reads"] = usage.fire_reads * prices.read_million
    if backend == "aurora":
        lines["Aurora, I/O"] = usage.fire_ios * prices.aurora_io_million
    item, row = usage.fire_item_bytes, usage.fire_row_bytes
    months = usage.kept_days / DAYS
    return lines | _stored(backend, MILLION * item * months, MILLION * row * months, prices)


def keeping(backend: Backend, usage: Usage = Usage(), prices: Prices = Prices()) -> Lines:
    """A month of as many schedules as there are, whether they fire or not."""
    items, rows = usage.schedule_item_bytes, usage.schedule_row_bytes
    return _stored(backend, usage.schedules * items, usage.schedules * rows, prices)


def _stored(backend: Backend, items: float, rows: float, prices: Prices) -> Lines:
    """A month of so many bytes; a Postgres of one's own is billed to its owner."""
    match backend:
        case "dynamodb":
            return {
                "DynamoDB, storage": items / GB * prices.table_gb,
                "DynamoDB, backup": items / GB * prices.table_backup_gb,
            }
        case "aurora":
            return {"Aurora, storage": rows / GB * prices.aurora_gb}
        case "postgres":
            return {}


def looking_ahead(seconds: float, usage: Usage = Usage(), prices: Prices = Prices()) -> Lines:
    """A month more than `at_rest`, at most: something is due in every second.

    A tick stays until the last that it claimed is due, which is `seconds` after it began. Where
    nothing is due in the end of its window it leaves earlier, and where nothing is due, at once.
    """
    longer = max(0.0, seconds - usage.tick_seconds)
    return {"Lambda, ticks": _seconds(_ticks(usage) * longer, usage, prices)}


def scheduler_per_million(usage: Usage = Usage(), prices: Prices = Prices()) -> Lines:
    """The same million through EventBridge Scheduler, one schedule each, to a function that keeps
    no account and logs only what Lambda does.
    """
    return {
        "EventBridge Scheduler": prices.scheduler_million,
        "Lambda": _lambda(MILLION, usage.plain_seconds, usage, prices),
        "CloudWatch, logs": MILLION * usage.plain_log_kb / 1024**2 * prices.log_gb,
    }


def _ticks(usage: Usage) -> float:
    return HOURS * 60 / usage.tick_minutes


def _lambda(calls: float, seconds: float, usage: Usage, prices: Prices) -> float:
    return calls * prices.lambda_million / MILLION + _seconds(calls * seconds, usage, prices)


def _seconds(seconds: float, usage: Usage, prices: Prices) -> float:
    return seconds * usage.memory_gb * prices.lambda_gb_second


def table(usage: Usage = Usage(), prices: Prices = Prices()) -> str:
    """All of it, to read."""
    parts = []
    for backend in BACKENDS:
        parts.append(_part(f"{backend}, at rest, a month", at_rest(backend, usage, prices)))
        parts.append(_part(f"{backend}, a million fires", per_million(backend, usage, prices)))
        title = f"{backend}, {usage.schedules:,} schedules kept, a month"
        parts.append(_part(title, keeping(backend, usage, prices)))
    for seconds in LOOK_AHEADS:
        title = f"look-ahead of {seconds} s, a month more at most"
        parts.append(_part(title, looking_ahead(seconds, usage, prices)))
    parts.append(
        _part("EventBridge Scheduler, a million fires", scheduler_per_million(usage, prices))
    )
    pages = [f"  https://aws.amazon.com/{one}/pricing/" for one in dict.fromkeys(SOURCES.values())]
    parts.append("\n".join([f"Prices, unless you gave others, as published {PUBLISHED}:", *pages]))
    return "\n\n".join(parts)


def _part(title: str, lines: Mapping[str, float]) -> str:
    rows = [f"  {name:24} {cost:9.2f}" for name, cost in lines.items()]
    return "\n".join([title, *rows, f"  {'in all':24} {sum(lines.values()):9.2f} $"])
