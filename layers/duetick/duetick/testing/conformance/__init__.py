"""The conformance suite, by theme. `duetick.testing` says how to use it."""

from duetick.testing.conformance.accounting import AccountingConformance
from duetick.testing.conformance.atomicity import AtomicityConformance, PoisonConformance
from duetick.testing.conformance.attempts import AttemptConformance
from duetick.testing.conformance.audits import AuditConformance
from duetick.testing.conformance.backfilling import BackfillConformance
from duetick.testing.conformance.callers import CallerConformance
from duetick.testing.conformance.clocks import ClocksConformance
from duetick.testing.conformance.concurrency import ConcurrencyConformance
from duetick.testing.conformance.creations import CreationConformance
from duetick.testing.conformance.delivery import (
    AheadConformance,
    CallerKeyConformance,
    SettlingConformance,
    WindowConformance,
)
from duetick.testing.conformance.done import EndConformance
from duetick.testing.conformance.erasure import ErasureConformance
from duetick.testing.conformance.explaining import ExplainConformance
from duetick.testing.conformance.failing import FailingConformance
from duetick.testing.conformance.failure_hooks import (
    FailureHookConformance,
    HookAccountConformance,
    HookRunConformance,
)
from duetick.testing.conformance.failures import FailureConformance
from duetick.testing.conformance.fairness import FairnessConformance
from duetick.testing.conformance.find import FindConformance
from duetick.testing.conformance.forecasting import ForecastConformance
from duetick.testing.conformance.group_pauses import GroupPauseConformance
from duetick.testing.conformance.histories import HistoryConformance
from duetick.testing.conformance.index import IndexConformance
from duetick.testing.conformance.jobs import (
    JobConformance,
    JobKeepingConformance,
    JobTimeConformance,
)
from duetick.testing.conformance.late_edits import LateEditConformance
from duetick.testing.conformance.leases import FenceConformance
from duetick.testing.conformance.limited_hooks import LimitedHookConformance
from duetick.testing.conformance.limiting import LimitingConformance
from duetick.testing.conformance.limits import LimitConformance
from duetick.testing.conformance.lookups import LookupConformance
from duetick.testing.conformance.managing import PendingBellConformance, RingConformance
from duetick.testing.conformance.mirroring import MirroringConformance
from duetick.testing.conformance.misfire import LookAheadConformance, MisfireConformance
from duetick.testing.conformance.operating import OperatingConformance
from duetick.testing.conformance.operations import OperationConformance, OverviewConformance
from duetick.testing.conformance.overlap import OverlapConformance
from duetick.testing.conformance.places import PlaceConformance
from duetick.testing.conformance.purging import PurgeConformance
from duetick.testing.conformance.rebuild import DriftConformance, RebuildConformance
from duetick.testing.conformance.restoring import RestoreConformance
from duetick.testing.conformance.retaining import RetentionConformance
from duetick.testing.conformance.retries import RetryConformance
from duetick.testing.conformance.room import RoomConformance
from duetick.testing.conformance.schema import SchemaConformance
from duetick.testing.conformance.second_attempts import SecondAttemptConformance
from duetick.testing.conformance.standing import StandingOrderConformance
from duetick.testing.conformance.suite import Capability
from duetick.testing.conformance.verifying import VerifyConformance
from duetick.testing.conformance.versions import (
    QuotaConformance,
    RateConformance,
    VersionConformance,
)
from duetick.testing.conformance.working import LockConformance, WorkerConformance

__all__ = ["Capability", "StoreConformance"]


class StoreConformance(
    IndexConformance,
    AtomicityConformance,
    PoisonConformance,
    MirroringConformance,
    PendingBellConformance,
    RingConformance,
    RebuildConformance,
    DriftConformance,
    AuditConformance,
    BackfillConformance,
    LookupConformance,
    AttemptConformance,
    FenceConformance,
    CallerConformance,
    RetryConformance,
    SecondAttemptConformance,
    PlaceConformance,
    LimitConformance,
    EndConformance,
    RoomConformance,
    PurgeConformance,
    OperatingConformance,
    OperationConformance,
    OverviewConformance,
    RetentionConformance,
    LockConformance,
    WorkerConformance,
    OverlapConformance,
    MisfireConformance,
    LookAheadConformance,
    AccountingConformance,
    VerifyConformance,
    ExplainConformance,
    RestoreConformance,
    StandingOrderConformance,
    ForecastConformance,
    GroupPauseConformance,
    LimitingConformance,
    LimitedHookConformance,
    FailingConformance,
    FailureHookConformance,
    HookRunConformance,
    HookAccountConformance,
    JobConformance,
    JobTimeConformance,
    JobKeepingConformance,
    ClocksConformance,
    LateEditConformance,
    FairnessConformance,
    FindConformance,
    FailureConformance,
    HistoryConformance,
    ConcurrencyConformance,
    SchemaConformance,
    VersionConformance,
    QuotaConformance,
    RateConformance,
    CreationConformance,
    ErasureConformance,
    CallerKeyConformance,
    SettlingConformance,
    WindowConformance,
    AheadConformance,
):
    """All parts of the suite. Subclass it, override the fixture `store`, and run pytest."""
