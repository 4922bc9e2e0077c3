"""J-07: operators' questions about all users, on each store."""

from dataclasses import replace
from typing import Any

import pytest
from duetick.cli.main import main
from duetick.core.audit import audit
from duetick.core.flows import Flows
from duetick.core.gone import find_gone
from duetick.core.overview import USUAL_READ
from duetick.core.verify import Progress
from duetick.domain.occurrence import IndexRow
from duetick.domain.workers import NamedLock, Worker
from duetick.runtime import wiring

from tests.integration.api.asking import HELLO, HOUR
from tests.integration.local_product import NINE, Product, tick_seldom

BROKEN = IndexRow("bob", "broken", "75 * * * *", None, NINE)


def ask(running: Product, path: str, method: str = "GET") -> dict[str, Any]:
    """Return an operator's answer."""
    status, answer = running.call(method, path, token=running.stack.operator)
    assert status == 200, answer
    return dict(answer)


def counts(running: Product) -> dict[str, int]:
    """The counts of the overview that are not 0."""
    found = ask(running, "/api/overview")
    return {
        name: one["count"]
        for name, one in found.items()
        if isinstance(one, dict) and one.get("count")
    }


def listed(running: Product, query: str = "") -> list[tuple[str, str, str]]:
    """Return the schedules of all users, by pages of two."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = ask(running, f"/api/all-schedules?limit=2{query}{cursor}")
        found += page["schedules"]
        if page["cursor"] is None:
            return sorted((one["user"], one["key"], one["state"]) for one in found)
        cursor = f"&cursor={page['cursor']}"


def test_j07_the_overview_counts_what_is_due_late_under_way_and_dead(anywhere: Product) -> None:
    assert counts(anywhere) == {}
    anywhere.client("ann").put("k", HELLO)
    anywhere.store.index.upsert(BROKEN)
    anywhere.clock.now = NINE
    assert counts(anywhere) == {"due": 2}
    anywhere.clock.now = NINE + 150_000
    assert counts(anywhere) == {"due": 2, "late": 2}
    (leased,) = anywhere.store.index.claim_due(NINE)
    assert counts(anywhere) == {"queued": 1, "dead": 1, "unreadable": 1}
    anywhere.store.ledger.begin(leased, now=NINE)
    assert counts(anywhere) == {"running": 1, "dead": 1, "unreadable": 1}
    anywhere.clock.now = NINE + 2 * 86_400_000
    assert "dead" not in counts(anywhere)


def test_j07_what_is_late_depends_on_the_cadence(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.client("ann").put("k", HELLO)
    running.clock.now = NINE + 600_000
    assert counts(running) == {"due": 1, "late": 1}
    tick_seldom(running, monkeypatch)
    assert counts(running) == {"due": 1}
    assert ask(running, "/api/overview")["lateAfter"] == 3_630


def test_j07_the_overview_tells_whose_the_newest_dead_are(anywhere: Product) -> None:
    assert ask(anywhere, "/api/overview")["failing"] == {"of": 0, "flows": [], "users": []}
    for user, keys in (("ann", 1), ("bob", 2)):
        for number in range(keys):
            anywhere.operator(user).put(f"k{number}", HELLO)
    anywhere.store.index.claim_due(NINE, 100)
    anywhere.clock.now = NINE + 2 * HOUR
    anywhere.store.ledger.claim_waiting(anywhere.clock.now)
    assert ask(anywhere, "/api/overview")["failing"] == {
        "of": 3,
        "flows": [{"flow": "reminders", "dead": 3}],
        "users": [{"user": "bob", "dead": 2}, {"user": "ann", "dead": 1}],
    }
    anywhere.clock.now += 24 * HOUR
    assert ask(anywhere, "/api/overview")["failing"]["of"] == 0


def test_v02_the_overview_says_what_is_wrong_as_the_command_does(
    running: Product, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    running.operator("ann").put("k", HELLO)
    running.store.index.claim_due(NINE, 100)
    running.clock.now = NINE + 2 * HOUR
    running.store.ledger.claim_waiting(running.clock.now)
    told = ask(running, "/api/overview")["wrong"]
    assert {one["kind"] for one in told} >= {"dead", "silent"}
    assert main(["overview", "--url", running.stack.server.url]) == 0
    shown = capsys.readouterr().out
    for one in told:
        assert f"WRONG  {one['said']}" in shown
    assert "by flow: reminders 1." in shown
    assert "By user: ann 1." in shown


def test_j07_the_overview_tells_the_last_hourly_count(running: Product) -> None:
    assert ask(running, "/api/overview")["counted"] is None
    for key in ("a", "b", "c"):
        running.client("ann").put(key, HELLO)
    running.client("ann").pause("c")
    audit(running.store, NINE)
    counted = ask(running, "/api/overview")["counted"]
    none = dict.fromkeys(("done", "unindexed", "stale", "overdue"), 0)
    assert counted == {"at": "2026-12-01T09:00:00Z", "active": 2, "paused": 1, **none}


def test_t12_the_overview_tells_what_names_a_flow_that_is_not_deployed(anywhere: Product) -> None:
    assert ask(anywhere, "/api/overview")["gone"] is None
    anywhere.client("ann").put("k", HELLO)
    find_gone(anywhere.store, Flows({}), NINE)
    assert ask(anywhere, "/api/overview")["gone"] == {
        "at": "2026-12-01T09:00:00Z",
        "count": 1,
        "first": [{"flow": HELLO["flow"], "schedules": 1}],
    }
    find_gone(anywhere.store, wiring.flows(), NINE + 1_000)
    gone = ask(anywhere, "/api/overview")["gone"]
    assert gone == {"at": "2026-12-01T09:00:01Z", "count": 0, "first": []}


def test_j07_the_schedules_of_all_users_are_listed_by_pages_and_state(anywhere: Product) -> None:
    for user in ("ann", "bob", "c#d"):
        anywhere.client(user).put("k", HELLO)
    anywhere.client("bob").pause("k")
    anywhere.store.index.upsert(BROKEN)
    anywhere.store.index.claim_due(NINE)
    everything = [
        ("ann", "k", "active"),
        ("bob", "broken", "unreadable"),
        ("bob", "k", "paused"),
        ("c#d", "k", "active"),
    ]
    assert listed(anywhere) == everything
    assert listed(anywhere, "&state=paused") == [everything[2]]
    assert listed(anywhere, "&state=unreadable") == [everything[1]]
    status, answer = anywhere.call(
        "GET", "/api/all-schedules?cursor=x", token=anywhere.stack.operator
    )
    assert (status, answer["error"]) == (400, "invalid_cursor")


def test_j07_what_cannot_be_read_is_listed_and_mended(anywhere: Product) -> None:
    names = [f"broken-{number}" for number in range(3)]
    for name in names:
        anywhere.store.index.upsert(IndexRow("bob", name, "75 * * * *", None, NINE))
    anywhere.clock.now = NINE
    anywhere.store.index.claim_due(NINE)
    first = ask(anywhere, "/api/unreadable?limit=2")
    rest = ask(anywhere, f"/api/unreadable?limit=2&cursor={first['cursor']}")
    assert [one["key"] for one in first["unreadable"] + rest["unreadable"]] == names
    assert rest["cursor"] is None
    assert "75" in first["unreadable"][0]["error"]
    path = "/api/users/bob/schedules/broken-0"
    status, answer = anywhere.call("POST", f"{path}/mend", token=anywhere.stack.operator)
    assert (status, answer["error"]) == (409, "still_unreadable")
    anywhere.call("PUT", path, HELLO, token=anywhere.stack.operator)
    assert ask(anywhere, f"{path}/mend", "POST")["mended"] is False
    assert len(ask(anywhere, "/api/unreadable")["unreadable"]) == 2


def test_j07_a_row_that_was_lost_is_mended(running: Product) -> None:
    running.client("ann").put("k", HELLO)
    running.store.index.remove("ann", "k")
    path = "/api/users/ann/schedules/k/mend"
    assert ask(running, path, "POST") == {"mended": True, "nextFireAt": "2026-12-01T09:00:00Z"}
    status, answer = running.call(
        "POST", "/api/users/ann/schedules/none/mend", token=running.stack.operator
    )
    assert (status, answer["error"]) == (404, "schedule_not_found")


def test_j07_the_overview_tells_the_last_ticks_and_their_silence(anywhere: Product) -> None:
    assert ask(anywhere, "/api/overview")["ticks"] == {
        "silent": True,
        "silentAfter": 180,
        "last": [],
    }
    report = anywhere.store.shelf.report
    for minute in range(7):
        start = NINE + minute * 60_000
        counts = {"claimed": minute, "failed": 1}
        tick = Worker(f"tick_{minute}", "tick", start, start + 900_000)
        report(replace(tick, ended_at=start + 1_000, lateness_ms=5, counts=counts))
    for number in range(USUAL_READ):
        report(Worker(f"run_{number}", "background", NINE + 600_000, NINE + 700_000))
    last_end = NINE + 6 * 60_000 + 1_000
    anywhere.clock.now = last_end + 179_999
    ticks = ask(anywhere, "/api/overview")["ticks"]
    assert ticks["silent"] is False
    assert [one["id"] for one in ticks["last"]] == [f"tick_{n}" for n in (6, 5, 4, 3, 2)]
    anywhere.clock.now = last_end + 180_000
    assert ask(anywhere, "/api/overview")["ticks"] == ticks | {"silent": True}
    assert ticks["last"][0]["counts"] == {"claimed": 6, "failed": 1}
    report(Worker("tick_long", "tick", last_end, last_end + 900_000))
    assert ask(anywhere, "/api/overview")["ticks"]["silent"] is False, "one is at work"
    anywhere.clock.now = last_end + 900_000
    assert ask(anywhere, "/api/overview")["ticks"]["silent"] is True, "it never ended"


def test_j07_the_overview_tells_what_operators_have_ordered(anywhere: Product) -> None:
    anywhere.operator("ann").put("k", HELLO)
    pauses = anywhere.store.pauses
    for number in range(7):
        pauses.pause(f"flow:{number}", note=f"n{number}", by="ops", now=NINE + number)
    pauses.resume("flow:6", now=NINE + 7)
    pauses.pause("user:bob", until=NINE + 1_000, now=NINE)
    anywhere.clock.now = NINE + 1_000
    span = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"}
    made = anywhere.operator("ann").start_backfill("k", span, dry_run=False)["started"]
    assert made is not None
    found = ask(anywhere, "/api/overview")
    assert found["pauses"]["count"] == 6
    assert [one["note"] for one in found["pauses"]["first"]] == ["n5", "n4", "n3", "n2", "n1"]
    assert found["backfills"] == {"count": 1, "first": [made]}


def test_j07_the_overview_tells_the_faults_of_the_last_verification(running: Product) -> None:
    Progress(NINE, NINE + 1_000, faults=1, verified_faults=2).keep(running.store)
    assert ask(running, "/api/overview")["verified"] == {
        "until": "2026-12-01T09:00:00Z",
        "endedAt": "2026-12-01T09:00:01Z",
        "faults": 2,
        "faultsSince": 1,
    }


def test_j12_the_last_ticks_are_listed_and_one_that_is_silent_is_lost(anywhere: Product) -> None:
    tick = Worker("tick_1", "tick", NINE - 60_000, NINE)
    ended = replace(tick, id="tick_2", ended_at=NINE, lateness_ms=7, counts={"claimed": 3})
    for one in (tick, ended, replace(tick, id="tick_3", kind="background", silent_at=NINE + 1)):
        anywhere.store.shelf.report(one)
    anywhere.clock.now = NINE
    found = {one["id"]: one for one in ask(anywhere, "/api/workers")["workers"]}
    states = {name: one["state"] for name, one in found.items()}
    assert states == {"tick_1": "lost", "tick_2": "ended", "tick_3": "working"}
    assert found["tick_2"] == {
        "id": "tick_2",
        "kind": "tick",
        "state": "ended",
        "startedAt": "2026-12-01T08:59:00Z",
        "endedAt": "2026-12-01T09:00:00Z",
        "milliseconds": 60_000,
        "latenessMilliseconds": 7,
        "counts": {"claimed": 3},
    }
    assert len(ask(anywhere, "/api/workers?limit=2")["workers"]) == 2
    path = "/api/workers?limit=1001"
    assert anywhere.call("GET", path, token=anywhere.stack.operator)[0] == 400


def test_j08_the_locks_are_listed(anywhere: Product) -> None:
    assert ask(anywhere, "/api/locks") == {"locks": []}
    for name, until in (("purge", NINE + 1), ("audit", NINE)):
        anywhere.store.shelf.acquire(NamedLock(name, "one", NINE - 60_000, until), NINE - 60_000)
    anywhere.clock.now = NINE
    found = ask(anywhere, "/api/locks")["locks"]
    assert [(one["name"], one["state"]) for one in found] == [("audit", "free"), ("purge", "held")]
    assert (found[1]["owner"], found[1]["since"]) == ("one", "2026-12-01T08:59:00Z")


@pytest.mark.parametrize(
    "path", ["overview", "workers", "locks", "all-schedules", "unreadable", "operations", "pauses"]
)
def test_j07_what_is_about_all_users_is_for_operators(running: Product, path: str) -> None:
    for token in (running.stack.token, running.stack.secret, "guess"):
        assert running.call("GET", f"/api/{path}", token=token)[0] == 401
