"""The functions by which the server keeps the plans of the everyday writes."""

import re
import time

from duetick.core.store import Store
from duetick.domain.attempts import Begun, Outcome
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.stores.postgres.kept import KEPT, routines
from duetick.stores.sql.queries import load
from duetick.testing.conformance.samples import NOON
from pg8000.native import Connection

FAILED = Outcome(State.FAILED, Reason.FAILED, 'it "rained"\n\\ \u2028')
INPUT: Json = {"a": "\U0001f600\t"}
STILL_THERE = """SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
CALLED = "SELECT calls FROM pg_stat_user_functions WHERE funcname = :name"


def names(other: Connection) -> set[str]:
    """The functions of the database."""
    found = other.run("SELECT proname FROM pg_proc WHERE proname LIKE 'duetick\\_%'")
    return {name for (name,) in found or ()}


def fired(store: Store) -> Occurrence:
    """An occurrence that failed once, with its trace."""
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE)
    made = Schedule("ann", "digest", "0 12 * * *", "f", "a", input=INPUT, policies=policies)
    store.schedules.put(made, now=NOON - 1)
    (claimed,) = store.index.claim_due(NOON)
    begun = store.ledger.begin(claimed, now=NOON)
    assert isinstance(begun, Begun)
    assert begun.schedule is not None
    assert begun.schedule.input == made.input
    ended = store.ledger.settle(begun.occurrence, FAILED, now=NOON + 1)
    assert ended is not None
    return ended


def test_j01_a_migration_makes_the_functions_of_this_code_once(
    store: Store, other: Connection
) -> None:
    expected = {one.name for one in routines().values()}
    assert names(other) == expected
    store.migrate()
    assert names(other) == expected


def test_i10_code_that_finds_no_functions_runs_the_queries(store: Store, other: Connection) -> None:
    for name in names(other):
        other.run(f"DROP FUNCTION {name}")
    found = fired(store)
    assert (found.state, found.error, found.attempts) == (State.RETRYING, FAILED.error, 1)
    (trace,) = store.ledger.events(found)
    assert "rained" in trace.note


def test_a_begin_and_its_end_are_what_the_functions_are_called_for(
    store: Store, other: Connection
) -> None:
    [[database]] = other.run("SELECT current_database()") or [[""]]
    other.run(f"ALTER DATABASE \"{database}\" SET track_functions = 'pl'")
    store.close()
    found = fired(store)
    assert (found.state, found.error) == (State.RETRYING, FAILED.error)
    store.close()
    while other.run(STILL_THERE):  # a process tells its counts as it ends
        time.sleep(0.01)
    by_name = {routine.name.split("_")[1]: routine.name for routine in routines().values()}
    assert other.run(CALLED, name=by_name["begin"]) == [[1]]


def test_the_columns_of_a_kept_query_have_names_of_their_own(
    store: Store, other: Connection
) -> None:
    """A row comes back as an object: two columns of one name would be one."""
    for query in {name for each in KEPT.values() for name in each}:
        sql = re.sub(r"(?<!:):[a-z_]+", "NULL", load("postgres")[query])
        other.run("BEGIN")
        other.run(sql)
        columns = [one["name"] for one in other.columns or ()]
        other.run("ROLLBACK")
        assert len(columns) == len({*columns}), query
