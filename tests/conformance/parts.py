"""The parts of the suite that together run every statement of a SQL store.

One SQL store and one DynamoDB run the whole suite. Others like them run these parts: another
release of Postgres, another user, another layout of the index, another service that does the same.
"""

from duetick.testing.conformance.audits import AuditConformance
from duetick.testing.conformance.backfilling import BackfillConformance
from duetick.testing.conformance.callers import CallerConformance
from duetick.testing.conformance.clocks import ClocksConformance
from duetick.testing.conformance.concurrency import ConcurrencyConformance
from duetick.testing.conformance.creations import CreationConformance
from duetick.testing.conformance.delivery import AheadConformance
from duetick.testing.conformance.erasure import ErasureConformance
from duetick.testing.conformance.explaining import ExplainConformance
from duetick.testing.conformance.failing import FailingConformance
from duetick.testing.conformance.failure_hooks import FailureHookConformance
from duetick.testing.conformance.fairness import FairnessConformance
from duetick.testing.conformance.find import FindConformance
from duetick.testing.conformance.forecasting import ForecastConformance
from duetick.testing.conformance.jobs import JobConformance, JobKeepingConformance
from duetick.testing.conformance.limiting import LimitingConformance
from duetick.testing.conformance.managing import PendingBellConformance, RingConformance
from duetick.testing.conformance.operations import OperationConformance, OverviewConformance
from duetick.testing.conformance.overlap import OverlapConformance
from duetick.testing.conformance.places import PlaceConformance
from duetick.testing.conformance.purging import PurgeConformance
from duetick.testing.conformance.room import RoomConformance
from duetick.testing.conformance.schema import SchemaConformance
from duetick.testing.conformance.verifying import VerifyConformance
from duetick.testing.conformance.versions import RateConformance
from duetick.testing.conformance.working import LockConformance, WorkerConformance


class EveryStatement(
    AuditConformance,
    BackfillConformance,
    CallerConformance,
    ClocksConformance,
    ConcurrencyConformance,
    CreationConformance,
    AheadConformance,
    ErasureConformance,
    FailureHookConformance,
    ExplainConformance,
    FailingConformance,
    FairnessConformance,
    FindConformance,
    ForecastConformance,
    JobConformance,
    JobKeepingConformance,
    LimitingConformance,
    PendingBellConformance,
    OperationConformance,
    OverviewConformance,
    OverlapConformance,
    PlaceConformance,
    PurgeConformance,
    RoomConformance,
    SchemaConformance,
    VerifyConformance,
    RateConformance,
    RingConformance,
    LockConformance,
    WorkerConformance,
):
    """Subclass it, after the class that overrides the fixture `store` and the hooks."""


class EveryPath(
    AheadConformance,
    AuditConformance,
    CreationConformance,
    ErasureConformance,
    FindConformance,
    OverlapConformance,
    PlaceConformance,
    PurgeConformance,
    SchemaConformance,
    LockConformance,
    WorkerConformance,
):
    """The parts for a service that only imitates DynamoDB: reads, writes, transactions, pages."""
