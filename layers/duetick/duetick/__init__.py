"""Duetick: per-user schedules for serverless applications."""

from duetick.core.context import Context
from duetick.core.flows import Flow
from duetick.domain.policies import Policies
from duetick.domain.schedule import Principal, Schedule

__all__ = ["Context", "Flow", "Policies", "Principal", "Schedule"]
