"""Logs and metrics: the one place that knows the tools behind them."""

import logging
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.metrics import MetricResolution, MetricUnit
from aws_lambda_powertools.metrics.functions import is_metrics_disabled
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
    AmazonCloudWatchEMFProvider,
)

from duetick.core.deaths import log_dead
from duetick.domain.redaction import redact_text
from duetick.domain.states import Reason, State

if TYPE_CHECKING:
    from duetick.core.audit import Audit
    from duetick.core.tally import TickReport
    from duetick.domain.schedule import Occurrence

# The stack's name, so that the metrics of two stacks in one account do not run together.
SERVICE: Final = os.environ.get("POWERTOOLS_SERVICE_NAME", "duetick")


class Provider(AmazonCloudWatchEMFProvider):
    """Where metrics are off, as in the local stack, nothing is gathered.

    The tool would gather them all the same, publish them at the hundredth value, and then warn
    that there are none.
    """

    def add_metric(
        self,
        name: str,
        unit: MetricUnit | str,
        value: float,
        resolution: MetricResolution | int = 60,
    ) -> None:
        """Gather one, unless metrics are off."""
        if not is_metrics_disabled():
            super().add_metric(name, unit, value, resolution)

    def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:
        """Publish what was gathered, unless metrics are off."""
        if not is_metrics_disabled():
            super().flush_metrics(raise_on_empty_metrics)


logger: Final = Logger(service=SERVICE)
metrics: Final = Metrics(provider=Provider(namespace="Duetick", service=SERVICE))

logging.getLogger("duetick")
copy_config_to_registered_loggers(logger, include={"duetick"})


def _withhold(record: logging.LogRecord) -> bool:
    """A stack that is logged does not tell what stands behind a secret's name (J-11).

    The record is changed for the loggers above too: Lambda's own would write the same stack again.
    """
    if record.exc_info and record.exc_info[0]:
        stack = logging.Formatter().formatException(record.exc_info)
        record.__dict__["exception"] = redact_text(stack)
        record.__dict__["exception_name"] = record.exc_info[0].__name__
        record.exc_info = None
    return True


for _handler in logger.handlers:
    _handler.addFilter(_withhold)

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
    """What a tick did, as one log line and as metrics."""
    for name in _COUNTED:
        metrics.add_metric(name.capitalize(), MetricUnit.Count, getattr(report, name))
    metrics.add_metric("Lateness", MetricUnit.Milliseconds, report.lateness_ms)
    logger.info("tick", action="tick", **asdict(report))


def record_answer(status: int) -> None:
    """One call of dispatch, by how it was answered."""
    metrics.add_metric("Dispatches", MetricUnit.Count, 1)
    metrics.add_metric("DispatchErrors", MetricUnit.Count, int(status >= SERVER_ERROR))


def record_settled(occurrence: "Occurrence") -> None:
    """One attempt's end, where it is counted: the death of an occurrence wants an alarm."""
    dead, lost = occurrence.state is State.DEAD, occurrence.reason is Reason.LOST
    metrics.add_metric("Dead", MetricUnit.Count, int(dead and not lost))
    if lost:
        metrics.add_metric("Lost", MetricUnit.Count, 1)
    if dead:
        log_dead(occurrence)


def record_audit(found: "Audit") -> dict[str, object]:
    """What is active, and what should be, as one log line and as metrics."""
    metrics.add_metric("Active", MetricUnit.Count, found.active)
    metrics.add_metric("Unindexed", MetricUnit.Count, found.unindexed)
    metrics.flush_metrics()
    logger.info("audit", action="audit", **asdict(found))
    return asdict(found)
