"""The suite asks each call of a store whether it says that the schema is missing."""

from inspect import isfunction

from duetick.core.store import Index, Ledger, Schedules, Store
from duetick.testing.conformance.schema import CALLS

PARTS = {"": Store, "index.": Index, "schedules.": Schedules, "ledger.": Ledger}
WITHOUT_A_SCHEMA = {"migrate", "close", "schedules.with_warning"}


def test_i10_every_call_of_a_store_is_asked_where_nothing_was_migrated() -> None:
    public = {
        part + name
        for part, kind in PARTS.items()
        for name, found in vars(kind).items()
        if isfunction(found) and not name.startswith("_")
    }
    asked = {name for name in CALLS if not name.startswith("shelf.")}
    assert asked == public - WITHOUT_A_SCHEMA
