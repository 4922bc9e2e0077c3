"""Logs and metrics: the one place that knows the tools behind them."""

import logging
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.metrics import MetricUnit

from duetick.core.tick import TickReport

logger: Final = Logger(service="duetick")
metrics: Final = Metrics(namespace="Duetick", service="duetick")

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
