"""The functions by which the server keeps the plans of the everyday writes."""

import json
import re
import threading
import time
from collections.abc import Collection

import pg8000.native
from duetick.core.store import Store
from duetick.domain.attempts import Begun, Outcome
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.stores.postgres.kept import KEPT, routines
from duetick.stores.postgres.releases import KEPT_MS, NOTE
from duetick.stores.sql.queries import load
from duetick.testing.conformance.samples import MINUTE, NOON
from pg8000.native import Connection

from tests.lab.postgres import connect

FAILED = Outcome(State.FAILED, Reason.FAILED, 'it "rained"\n\\ \u2028')
INPUT: Json = {"a": "\U0001f600\t"}
STILL_THERE = """SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
LOCK = "SELECT 1 FROM schedules WHERE key = 'digest' FOR UPDATE"
OLD = "duetick_begin_00000000000a"
OLDER = "duetick_renew_00000000000b"
LANGUAGE = "RETURNS json LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"
CALLED = "SELECT calls FROM pg_stat_user_functions WHERE funcname = :name"


def names(other: Connection) -> set[str]:
    """Return the functions of the database."""
    found = other.run("SELECT proname FROM pg_proc WHERE proname LIKE 'duetick\\_%'")
    return {name for (name,) in found or ()}


def fired(store: Store) -> Occurrence:
    """Return an occurrence that failed once, with its trace."""
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
    assert names(other) == own()
    store.migrate()
    assert names(other) == own()


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


def make_old(other: Connection, *names: str) -> None:
    """Make functions as the code of other releases did."""
    for name in names:
        other.run(f"CREATE FUNCTION {name}(text, bigint) {LANGUAGE}")


def own() -> set[str]:
    """Return the functions of this code."""
    return {one.name for one in routines().values()}


def note_releases(store: Store, *releases: Collection[str], ago: int = KEPT_MS) -> None:
    """Note releases, the last one first, that were the newest until `ago` milliseconds ago."""
    noted = [{"until": store.now() - ago, "names": sorted(names)} for names in releases]
    store.shelf.keep_note(NOTE, json.dumps(noted))


def test_i10_functions_that_no_note_tells_of_stay_at_first(store: Store, other: Connection) -> None:
    make_old(other, OLD, OLDER)
    for _ in range(2):
        store.migrate()
        assert names(other) == {*own(), OLD, OLDER}


def test_i10_a_migration_drops_the_functions_of_all_but_this_release_and_the_one_before(
    store: Store, other: Connection
) -> None:
    make_old(other, OLD, OLDER)
    note_releases(store, own(), [OLD], [OLDER])
    store.migrate()
    assert names(other) == {*own(), OLD}


def test_i10_functions_of_a_release_that_was_the_newest_within_thirty_days_stay(
    store: Store, other: Connection
) -> None:
    make_old(other, OLD, OLDER)
    note_releases(store, [OLD], [OLDER], ago=KEPT_MS - MINUTE)
    store.migrate()
    assert names(other) == {*own(), OLD, OLDER}


def test_i10_the_thirty_days_begin_when_another_release_takes_the_place(
    store: Store, other: Connection
) -> None:
    """Two deployments on one day: the release of the days before may still be at work."""
    make_old(other, OLD)
    note_releases(store, [OLD])
    store.migrate()
    newest, old = json.loads(store.shelf.note(NOTE) or "")
    assert old["names"] == [OLD]
    store.shelf.keep_note(NOTE, json.dumps([{"until": 0, "names": ["hotfix"]}, old]))
    store.migrate()
    assert names(other) == {*own(), OLD}
    assert newest["names"] == sorted(own())


def test_i10_a_rollback_makes_its_functions_again(store: Store, other: Connection) -> None:
    name = min(own())
    make_old(other, OLD)
    note_releases(store, [OLD], own())
    other.run(f"DROP FUNCTION {name}")
    store.migrate()
    assert names(other) == {*own(), OLD}


def test_functions_of_somebody_else_stay_and_hold_up_no_migration(
    postgres_url: str, other: Connection
) -> None:
    """A role owns the functions that it makes, and drops no other role's."""
    role = "duetick_migrates"
    other.run(f"CREATE ROLE {role}; GRANT CREATE ON SCHEMA public TO {role}")

    def connected() -> pg8000.native.Connection:
        made = connect(postgres_url)
        made.run(f"SET ROLE {role}")
        return made

    store = open_store(connected)
    try:
        store.migrate()
        make_old(other, OLDER)
        note_releases(store, own(), [OLD], [OLDER])
        store.migrate()
        assert names(other) == {*own(), OLDER}
    finally:
        store.close()
        other.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_i10_a_process_whose_functions_are_dropped_sends_the_queries(
    store: Store, other: Connection
) -> None:
    store.schedules.put(Schedule("ann", "digest", "0 12 * * *", "f", "a"), now=NOON - 1)
    (claimed,) = store.index.claim_due(NOON)
    begun = store.ledger.begin(claimed, now=NOON)
    assert isinstance(begun, Begun)
    for name in names(other):
        other.run(f"DROP FUNCTION {name}")
    ended = store.ledger.settle(begun.occurrence, FAILED, now=NOON + 1)
    assert ended is not None
    assert (ended.state, ended.error) == (State.DEAD, FAILED.error)


def test_i10_a_begin_that_is_under_way_ends_though_its_function_is_dropped(
    store: Store, other: Connection, postgres_url: str
) -> None:
    store.schedules.put(Schedule("ann", "digest", "0 12 * * *", "f", "a"), now=NOON - 1)
    (claimed,) = store.index.claim_due(NOON)
    begun: list[object] = []

    def begin() -> None:
        begun.append(store.ledger.begin(claimed, now=NOON))

    with connect(postgres_url) as holder:
        holder.run("BEGIN")
        holder.run(LOCK)
        waiting = threading.Thread(target=begin)
        waiting.start()
        while other.run(WAITS) != [[1]]:
            time.sleep(0.01)
        for name in names(other):
            other.run(f"DROP FUNCTION {name}")
        holder.run("COMMIT")
        waiting.join(20)
    [answer] = begun
    assert isinstance(answer, Begun)
    assert answer.occurrence.attempts == 1


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
