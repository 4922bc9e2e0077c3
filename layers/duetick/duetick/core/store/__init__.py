"""One database as the core uses it: schedules, index and ledger, over any shelf."""

from duetick.core.store.index import Index, OnPoisoned
from duetick.core.store.ledger import Ledger
from duetick.core.store.pauses import GroupPauses
from duetick.core.store.schedules import Listing, Page, Schedules, Sift
from duetick.core.store.store import Difference, Store, compare

__all__ = [
    "Difference",
    "GroupPauses",
    "Index",
    "Ledger",
    "Listing",
    "OnPoisoned",
    "Page",
    "Schedules",
    "Sift",
    "Store",
    "compare",
]
