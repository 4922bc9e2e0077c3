"""Logs and metrics, and the tools behind them."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.metrics import MetricResolution, MetricUnit
from aws_lambda_powertools.metrics.functions import is_metrics_disabled
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
    AmazonCloudWatchEMFProvider,
)

from duetick.core.correlation import stamp
from duetick.core.log_lines import about, log_dead
from duetick.domain.states import Reason, State

if TYPE_CHECKING:
    from duetick.core.audit import Audit
    from duetick.core.dispatch.packs import PackReport
    from duetick.core.gone import Gone
    from duetick.core.managed.counting import CountedBells
    from duetick.core.tick import TickReport
    from duetick.core.verify import Verified
    from duetick.domain.schedule import Occurrence, Record

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

# The stack's name: it separates the metrics of two stacks in one account.
SERVICE: Final = os.environ.get("POWERTOOLS_SERVICE_NAME", "duetick")


class Provider(AmazonCloudWatchEMFProvider):
    """A provider that gathers nothing while metrics are off, as in the local stack.

    Powertools would gather metrics anyway, publish them at the hundredth value, and then warn that
    there are none.
    """

    def add_metric(
        self,
        name: str,
        unit: MetricUnit | str,
        value: float,
        resolution: MetricResolution | int = 60,
    ) -> None:
        """Add a metric, unless metrics are off."""
        if not is_metrics_disabled():
            super().add_metric(name, unit, value, resolution)

    def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:
        """Publish the gathered metrics, unless metrics are off."""
        if not is_metrics_disabled():
            super().flush_metrics(raise_on_empty_metrics)


logger: Final = Logger(service=SERVICE)
metrics: Final = Metrics(provider=Provider(namespace="Duetick", service=SERVICE))

logging.getLogger("duetick")
copy_config_to_registered_loggers(logger, include={"duetick"})


def _withhold(record: logging.LogRecord) -> bool:
    """Redact the values of secret names in a stack, and in the words of a warning or an error:
    they may be a driver's (J-11).

    The record itself changes, so that parent loggers see no stack: Lambda's handler would write
    the same stack again.
    """
    if record.levelno >= logging.WARNING:
        from duetick.domain.redaction import redact_text  # for a failure: no start pays for it

        record.msg, record.args = redact_text(record.getMessage()), ()
    if record.exc_info and record.exc_info[0]:
        stack = logging.Formatter().formatException(record.exc_info)
        from duetick.domain.redaction import redact_text  # for a failure: no start pays for it

        record.__dict__["exception"] = redact_text(stack)
        record.__dict__["exception_name"] = record.exc_info[0].__name__
        record.exc_info = None
    return True


def withhold_raised(handler: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Redact the words of each error that a function raises (J-11).

    Lambda logs them, and puts them into the queue of dead letters, beside the event.
    """

    @wraps(handler)
    def handle(*args: _Given.args, **names: _Given.kwargs) -> _Answer:
        try:
            return handler(*args, **names)
        except Exception as problem:
            from duetick.domain.redaction import redact_text  # for a failure: no start pays for it

            said = str(problem)
            told = redact_text(said)
            if told != said:
                problem.args = (told,)
            if str(problem) != told:  # it makes its words of something else
                raise RuntimeError(f"{type(problem).__name__}: {told}") from None
            raise

    return handle


for _handler in logger.handlers:
    _handler.addFilter(_withhold)
    _handler.addFilter(stamp)

SERVER_ERROR: Final = 500
_COUNTED: Final = (
    "claimed",
    "delivered",
    "failed",
    "skipped",
    "lost",
    "poisoned",
    "left",
    "backlog",
)


def record_tick(report: "TickReport") -> None:
    """Record the report of a tick, as one log line and as metrics."""
    for name in _COUNTED:
        metrics.add_metric(name.capitalize(), MetricUnit.Count, getattr(report, name))
    metrics.add_metric("Dead", MetricUnit.Count, report.rejected)
    metrics.add_metric("Lateness", MetricUnit.Milliseconds, report.lateness_ms)
    logger.info("tick", action="tick", **asdict(report))


def record_pending(pending: int) -> None:
    """Record the number of bells that are not known to be in step."""
    metrics.add_metric("Pending", MetricUnit.Count, pending)


def record_bells(found: "CountedBells", pending: int) -> None:
    """Record the faults that the hourly count of bells found, and the number of pending bells."""
    metrics.add_metric("BellsWrong", MetricUnit.Count, sum(found))
    record_pending(pending)
    metrics.flush_metrics()
    logger.info("bells", action="bells", pending=pending, **found._asdict())


def record_answer(status: int) -> None:
    """Count a call of dispatch by the status of its answer."""
    metrics.add_metric("Dispatches", MetricUnit.Count, 1)
    metrics.add_metric("DispatchErrors", MetricUnit.Count, int(status >= SERVER_ERROR))
    metrics.add_metric("Dead", MetricUnit.Count, 0)


def record_success(occurrence: "Occurrence", status: int) -> None:
    """Log a success in a pack."""
    named: dict[str, Any] = about(occurrence)
    logger.info("dispatch", action="dispatch", status=status, **named)


def record_pack(report: "PackReport", named: Mapping[str, Any]) -> None:
    """Record the result of a message: one log line, and metrics."""
    metrics.add_metric("Packs", MetricUnit.Count, report.packs)
    metrics.add_metric("Delivered", MetricUnit.Count, report.succeeded + report.refused)
    metrics.add_metric("Skipped", MetricUnit.Count, report.refused)
    metrics.add_metric("Failed", MetricUnit.Count, report.failed)
    metrics.add_metric("Returned", MetricUnit.Count, report.not_begun + report.not_settled)
    metrics.add_metric("Lateness", MetricUnit.Milliseconds, report.lateness_ms)
    metrics.add_metric("Dead", MetricUnit.Count, 0)
    logger.info("pack", action="pack", **named, **asdict(report))


def record_settled(occurrence: "Occurrence") -> None:
    """Count and log the death of an occurrence: it raises an alarm."""
    lost = occurrence.reason is Reason.LOST
    if lost:
        metrics.add_metric("Lost", MetricUnit.Count, 1)
    if occurrence.state is State.DEAD:
        if not lost:
            metrics.add_metric("Dead", MetricUnit.Count, 1)
        log_dead(occurrence)


def record_gone_death(occurrence: "Occurrence") -> None:
    """Count and log a death whose flow, or action, is gone: no other alarm counts it."""
    metrics.add_metric("Gone", MetricUnit.Count, 1)
    log_dead(occurrence)


def record_auto_paused(_schedule: "Record") -> None:
    """Count a schedule that was paused because it failed too often in a row."""
    metrics.add_metric("AutoPaused", MetricUnit.Count, 1)


def record_gone(found: "Gone") -> dict[str, object]:
    """Record the number of schedules that miss their flow or action. Return all that was found."""
    metrics.add_metric("Gone", MetricUnit.Count, found.schedules)
    metrics.flush_metrics()
    return asdict(found)


def record_verified(found: "Verified") -> None:
    """Record the counts of an hourly verification: what it saw, and the faults that it found."""
    metrics.add_metric("Verified", MetricUnit.Count, found.schedules)
    metrics.add_metric("Unaccounted", MetricUnit.Count, found.found.total())
    metrics.flush_metrics()
    counts: dict[str, Any] = {
        "schedules": found.schedules,
        "times": found.times,
        "under_way": found.under_way,
        "unverified": found.unverified,
        "since": found.since,
        "until": found.until,
        "complete": found.is_complete,
        **found.found,
    }
    logger.info("verify", action="verify", **counts)


def record_audit(found: "Audit") -> dict[str, object]:
    """Record the counts of an audit, and return them."""
    for name, count in asdict(found).items():
        metric = "".join(part.capitalize() for part in name.split("_"))
        metrics.add_metric(metric, MetricUnit.Count, count)
    metrics.flush_metrics()
    logger.info("audit", action="audit", **asdict(found))
    return asdict(found)
