"""Logs and metrics: the one place that knows the tools behind them."""

import logging
import os
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.metrics import MetricUnit

from duetick.core.tick import TickReport

# The stack's name, so that the metrics of two stacks in one account do not run together.
SERVICE: Final = os.environ.get("POWERTOOLS_SERVICE_NAME", "duetick")

logger: Final = Logger(service=SERVICE)
metrics: Final = Metrics(namespace="Duetick", service=SERVICE)

logging.getLogger("duetick")
copy_config_to_registered_loggers(logger, include={"duetick"})


def record_tick(report: TickReport) -> None:
    """What a tick did, as one log line and as metrics."""
    for name in ("claimed", "delivered", "failed", "poisoned", "left"):
        metrics.add_metric(name.capitalize(), MetricUnit.Count, getattr(report, name))
    metrics.add_metric("Lateness", MetricUnit.Milliseconds, report.lateness_ms)
    logger.info(
        "tick",
        action="tick",
        claimed=report.claimed,
        delivered=report.delivered,
        failed=report.failed,
        poisoned=report.poisoned,
        left=report.left,
        lateness_ms=report.lateness_ms,
    )
