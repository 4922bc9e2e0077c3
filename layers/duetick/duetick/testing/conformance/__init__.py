"""The conformance suite, by theme. `duetick.testing` says how to use it."""

from duetick.testing.conformance.accounting import AccountingConformance
from duetick.testing.conformance.atomicity import AtomicityConformance, PoisonConformance
from duetick.testing.conformance.attempts import AttemptConformance
from duetick.testing.conformance.callers import CallerConformance
from duetick.testing.conformance.concurrency import ConcurrencyConformance
from duetick.testing.conformance.creations import CreationConformance
from duetick.testing.conformance.delivery import (
    AheadConformance,
    CallerKeyConformance,
    SettlingConformance,
    WindowConformance,
)
from duetick.testing.conformance.erasure import ErasureConformance
from duetick.testing.conformance.find import FindConformance
from duetick.testing.conformance.index import IndexConformance
from duetick.testing.conformance.late_edits import LateEditConformance
from duetick.testing.conformance.leases import FenceConformance
from duetick.testing.conformance.lookups import LookupConformance
from duetick.testing.conformance.mirroring import MirroringConformance
from duetick.testing.conformance.misfire import LookAheadConformance, MisfireConformance
from duetick.testing.conformance.overlap import OverlapConformance
from duetick.testing.conformance.rebuild import DriftConformance, RebuildConformance
from duetick.testing.conformance.retries import RetryConformance
from duetick.testing.conformance.schema import SchemaConformance
from duetick.testing.conformance.suite import Capability
from duetick.testing.conformance.versions import (
    QuotaConformance,
    RunQuotaConformance,
    VersionConformance,
)

__all__ = ["Capability", "StoreConformance"]


class StoreConformance(
    IndexConformance,
    AtomicityConformance,
    PoisonConformance,
    MirroringConformance,
    RebuildConformance,
    DriftConformance,
    LookupConformance,
    AttemptConformance,
    FenceConformance,
    CallerConformance,
    RetryConformance,
    OverlapConformance,
    MisfireConformance,
    LookAheadConformance,
    AccountingConformance,
    LateEditConformance,
    FindConformance,
    ConcurrencyConformance,
    SchemaConformance,
    VersionConformance,
    QuotaConformance,
    RunQuotaConformance,
    CreationConformance,
    ErasureConformance,
    CallerKeyConformance,
    SettlingConformance,
    WindowConformance,
    AheadConformance,
):
    """Subclass it, override the fixture `store`, run pytest."""
