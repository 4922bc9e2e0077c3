"""The costs of a deployment: counted units and measured durations times prices. All are inputs.

Prices are in dollars, without any free tier. `python -m tests.benchmarks.usage` measures durations
and logs again, `python -m tests.benchmarks.storage` measures bytes, and
`python -m tests.benchmarks.dynamodb_units` counts units.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from duetick.cli.prices import LISTED, PUBLISHED, SOURCES, Prices

Backend: TypeAlias = Literal["dynamodb", "aurora", "postgres"]
Way: TypeAlias = Literal["api", "queue", "managed"]
Lines: TypeAlias = dict[str, float]

WAYS: Final[tuple[Way, ...]] = ("api", "queue", "managed")
"""The ways from a row that is due to dispatch: over the template's `Transport` from a tick, or by
`Trigger=managed`.
"""
BACKENDS: Final[tuple[Backend, ...]] = ("dynamodb", "aurora", "postgres")
MILLION: Final = 1_000_000
GB: Final = 1024**3
HOURS: Final = 730.5
DAYS: Final = HOURS / 24
"""The days of an average month; `HOURS` has its hours."""
SECRETS: Final = 2
"""On Aurora: the passwords of the owner and of the functions' user."""
METRICS_OF_PACKS: Final = 2
ALARMS_OF_PACKS: Final = 2
"""The metrics and alarms that a stack with a queue has besides the others."""
METRICS_OF_BELLS: Final = 2
ALARMS_OF_BELLS: Final = 1
"""The same of a stack whose schedules have bells."""
MANAGED_TICK_MINUTES: Final = 60.0
"""The only `TickMinutes` that the template takes with `Trigger=managed`."""
LOOK_AHEADS: Final = (60, 120)
"""The seconds of look-ahead that the template offers."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a deployment.

    Units are counted. Seconds, as billed at `memory_gb`, and kilobytes of log are measured. Units
    and seconds are those of DynamoDB: it needs the most of both. `log_successes` is the share of
    the fires that succeed and have a line of their own. A pack of `pack_fires` is sent, received
    and deleted; its dispatch waits for its second. `pollers` ask an empty queue all the time. A
    ring claims, begins and settles in one invocation. A bell that is put, moved or deleted is one
    call of EventBridge, which takes most of `bell_seconds`; its units come on top of those of the
    schedule's change.
    """

    way: Way = "api"
    tick_minutes: float = 1.0
    memory_gb: float = 0.5
    tick_seconds: float = 0.02
    tick_reads: float = 3.5
    tick_writes: float = 1.0
    tick_log_kb: float = 1.7
    fire_tick_seconds: float = 0.0045
    fire_dispatch_seconds: float = 0.020
    fire_writes: float = 6.1
    fire_reads: float = 2.0
    fire_log_kb: float = 1.8
    success_log_kb: float = 0.5
    log_successes: float = 1.0
    pack_fires: float = 100.0
    pack_requests: float = 3.0
    pack_wait_seconds: float = 0.25
    pack_seconds: float = 0.013
    pack_fire_seconds: float = 0.004
    pack_tick_seconds: float = 0.001
    pack_log_kb: float = 1.7
    pollers: int = 5
    poll_seconds: float = 20.0
    ring_seconds: float = 0.035
    ring_writes: float = 6.0
    ring_reads: float = 2.0
    ring_log_kb: float = 1.5
    bell_seconds: float = 0.070
    bell_writes: float = 2.0
    bell_reads: float = 1.0
    fire_ios: float = 2.0
    schedules: int = 100_000
    kept_days: float = 30.0
    schedule_item_bytes: float = 1_350
    fire_item_bytes: float = 350
    schedule_row_bytes: float = 1_450
    fire_row_bytes: float = 520
    audit_reads: float = 0.51
    verified_per_hour: int = 20_000
    verify_reads: float = 2.02
    plain_seconds: float = 0.005
    plain_log_kb: float = 0.6
    aurora_units: float = 0.5
    proxy_least_units: float = 8.0
    metrics: int = 22
    alarms: int = 18
    zones: int = 2
    endpoints: int = 0
    nat: bool = False


def at_rest(backend: Backend, usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the costs of a month in which nothing fires."""
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
        **(queue_at_rest(usage, prices) if usage.way == "queue" else {}),
        **(bells_at_rest(prices) if usage.way == "managed" else {}),
    }
    return {name: cost for name, cost in lines.items() if cost}


def queue_at_rest(usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the costs of a month of an empty queue: Lambda polls it, and alarms watch it."""
    polls = usage.pollers * HOURS * 3_600 / usage.poll_seconds
    return {
        "SQS, polls": polls * prices.queue_million / MILLION,
        "CloudWatch, of packs": METRICS_OF_PACKS * prices.metric + ALARMS_OF_PACKS * prices.alarm,
    }


def bells_at_rest(prices: Prices = LISTED) -> Lines:
    """Return the costs of a month in which no bell rings: metrics and an alarm watch them."""
    cost = METRICS_OF_BELLS * prices.metric + ALARMS_OF_BELLS * prices.alarm
    return {"CloudWatch, of bells": cost}


def _database_at_rest(backend: Backend, ticks: float, usage: Usage, prices: Prices) -> Lines:
    if backend == "dynamodb":
        return {
            "DynamoDB, reads": ticks * usage.tick_reads * prices.read_million / MILLION,
            "DynamoDB, writes": ticks * usage.tick_writes * prices.write_million / MILLION,
        }
    if backend == "postgres":
        return {"Secrets Manager": prices.secret}
    units = max(usage.aurora_units, usage.proxy_least_units)
    return {
        "Aurora": usage.aurora_units * HOURS * prices.aurora_unit_hour,
        "RDS Proxy": units * HOURS * prices.proxy_unit_hour,
        "Secrets Manager": SECRETS * prices.secret,
    }


def per_million(backend: Backend, usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the costs of a million fires more, without the work of the action itself."""
    lines = _BY_WAY[usage.way](usage, prices)
    if backend == "dynamodb":
        rings = usage.way == "managed"
        writes = usage.ring_writes if rings else usage.fire_writes
        reads = usage.ring_reads if rings else usage.fire_reads
        lines["DynamoDB, writes"] = writes * prices.write_million
        lines["DynamoDB, reads"] = reads * prices.read_million
    if backend == "aurora":
        lines["Aurora, I/O"] = usage.fire_ios * prices.aurora_io_million
    item, row = usage.fire_item_bytes, usage.fire_row_bytes
    months = usage.kept_days / DAYS
    return lines | _storage(backend, MILLION * item * months, MILLION * row * months, prices)


def _by_api(usage: Usage, prices: Prices) -> Lines:
    log_kb = usage.fire_log_kb - (1 - usage.log_successes) * usage.success_log_kb
    return {
        "API Gateway": prices.api_million,
        "Lambda, dispatch": _lambda(MILLION, usage.fire_dispatch_seconds, usage, prices),
        "Lambda, ticks": _seconds(MILLION * usage.fire_tick_seconds, usage, prices),
        "CloudWatch, logs": MILLION * log_kb / 1024**2 * prices.log_gb,
    }


def _by_queue(usage: Usage, prices: Prices) -> Lines:
    """Return the costs of handing on a million fires in packs."""
    packs = MILLION / usage.pack_fires
    further = (usage.pack_fires - 1) * usage.pack_fire_seconds
    seconds = usage.pack_wait_seconds + usage.pack_seconds + further
    log_kb = packs * usage.pack_log_kb + MILLION * usage.log_successes * usage.success_log_kb
    return {
        "SQS": packs * usage.pack_requests * prices.fair_queue_million / MILLION,
        "Lambda, dispatch": _lambda(packs, seconds, usage, prices),
        "Lambda, ticks": _seconds(MILLION * usage.pack_tick_seconds, usage, prices),
        "CloudWatch, logs": log_kb / 1024**2 * prices.log_gb,
    }


def _by_bells(usage: Usage, prices: Prices) -> Lines:
    """Return the costs of a million rings, each an invocation of dispatch by EventBridge."""
    log_kb = usage.ring_log_kb - (1 - usage.log_successes) * usage.success_log_kb
    return {
        "EventBridge Scheduler": prices.scheduler_million,
        "Lambda, dispatch": _lambda(MILLION, usage.ring_seconds, usage, prices),
        "CloudWatch, logs": MILLION * log_kb / 1024**2 * prices.log_gb,
    }


_BY_WAY: Final[Mapping[Way, Callable[[Usage, Prices], Lines]]] = {
    "api": _by_api,
    "queue": _by_queue,
    "managed": _by_bells,
}


def bells_per_million(backend: Backend, usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the costs of a million bells put, moved or deleted, without the changes of their rows.

    EventBridge takes nothing for the call.
    """
    lines = {"Lambda, calls of EventBridge": _seconds(MILLION * usage.bell_seconds, usage, prices)}
    if backend == "dynamodb":
        lines["DynamoDB, writes"] = usage.bell_writes * prices.write_million
        lines["DynamoDB, reads"] = usage.bell_reads * prices.read_million
    return lines


def storage(backend: Backend, usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the costs of keeping the schedules for a month, even if none fires."""
    items, rows = usage.schedule_item_bytes, usage.schedule_row_bytes
    lines = _storage(backend, usage.schedules * items, usage.schedules * rows, prices)
    if backend == "dynamodb":
        reads = usage.schedules * usage.audit_reads * HOURS
        lines["DynamoDB, hourly audit"] = reads * prices.read_million / MILLION
        reads = min(usage.schedules, usage.verified_per_hour) * usage.verify_reads * HOURS
        lines["DynamoDB, hourly verification"] = reads * prices.read_million / MILLION
    return lines


def _storage(backend: Backend, items: float, rows: float, prices: Prices) -> Lines:
    """Return the costs of so many bytes for a month. Your own Postgres is not counted."""
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


def look_ahead(seconds: float, usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the most that a look-ahead adds to a month: occurrences are due in every second.

    A tick runs until the last occurrence that it claimed is due, `seconds` after it began. If none
    is due at the end of its window, it ends earlier; if none is due at all, it ends at once.
    """
    longer = max(0.0, seconds - usage.tick_seconds)
    return {"Lambda, ticks": _seconds(_ticks(usage) * longer, usage, prices)}


def scheduler_per_million(usage: Usage = Usage(), prices: Prices = LISTED) -> Lines:
    """Return the costs of the same million with EventBridge Scheduler, one schedule for each.

    The schedules call a function that keeps no ledger and logs only what Lambda logs.
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


def over(way: Way, usage: Usage = Usage()) -> Usage:
    """Return the usage of a stack of that way. It logs successes by the default of that way.

    With bells a tick comes each hour, even if the usage says otherwise.
    """
    minutes = MANAGED_TICK_MINUTES if way == "managed" else usage.tick_minutes
    successes = float(way != "queue")
    return replace(usage, way=way, tick_minutes=minutes, log_successes=successes)


def every(usage: Usage = Usage(), prices: Prices = LISTED) -> dict[str, dict[str, float]]:
    """Return the parts of each cost in dollars, by the title of the cost."""
    found: dict[str, Lines] = {}
    for backend in BACKENDS:
        found[f"{backend}, at rest, a month"] = at_rest(backend, usage, prices)
        found[f"{backend}, a million fires"] = per_million(backend, usage, prices)
        for fires, name in ((usage.pack_fires, f"packs of {usage.pack_fires:g}"), (1, "alone")):
            packed = replace(over("queue", usage), pack_fires=fires)
            title = f"{backend}, a million fires by the queue, {name}"
            found[title] = per_million(backend, packed, prices)
        rung = over("managed", usage)
        found[f"{backend}, at rest with Trigger=managed, a month"] = at_rest(backend, rung, prices)
        title = f"{backend}, a million fires with Trigger=managed"
        found[title] = per_million(backend, rung, prices)
        title = f"{backend}, a million bells put or deleted, more than their schedules"
        found[title] = bells_per_million(backend, rung, prices)
        title = f"{backend}, {usage.schedules:,} schedules kept, a month"
        found[title] = storage(backend, usage, prices)
    found["a queue, at rest, a month more"] = queue_at_rest(usage, prices)
    for seconds in LOOK_AHEADS:
        title = f"look-ahead of {seconds} s, a month more at most"
        found[title] = look_ahead(seconds, usage, prices)
    found["EventBridge Scheduler, a million fires"] = scheduler_per_million(usage, prices)
    return {title: dict(lines) for title, lines in found.items()}


def table(costs: Mapping[str, Mapping[str, float]]) -> str:
    """Return costs as a text."""
    parts = [_part(title, lines) for title, lines in costs.items()]
    pages = [f"  https://aws.amazon.com/{one}/pricing/" for one in dict.fromkeys(SOURCES.values())]
    parts.append("\n".join([f"Prices, unless you gave others, as published {PUBLISHED}:", *pages]))
    return "\n\n".join(parts)


def _part(title: str, lines: Mapping[str, float]) -> str:
    rows = [f"  {name:30} {cost:9.2f}" for name, cost in lines.items()]
    return "\n".join([title, *rows, f"  {'in all':30} {sum(lines.values()):9.2f} $"])
