"""Each trigger's event, as AWS sends it, through the handler that it is for."""

import json
import time
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import Mock

import pytest
from duetick.core import purge as purging
from duetick.core.audit import Audit
from duetick.core.done import Purged
from duetick.core.gone import Gone
from duetick.core.operations import NEWEST
from duetick.core.store import Store
from duetick.core.verify import Progress
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule
from duetick.runtime import invoking, wiring

from tests.integration.events.recorded import EVENTS, Handle, event, load_and_handle
from tests.integration.local_product import NINE, Clock

USED = {
    *(
        "audit",
        "scheduler",
        "rule",
        "dispatch-iam",
        "dispatch-secret",
        "operators-iam",
        "users-cognito",
        "users-lambda",
    ),
    *("occurrences-died", "packs"),
    *("custom-resource-create", "custom-resource-update", "custom-resource-delete"),
}


CHECKED = {"unreadable": 0, "complete": True}


def test_j07_an_operator_checks_and_rebuilds_by_a_step(handle: Handle, store: Store) -> None:
    handle("schedules", event("operators-iam"))
    store.index.remove("ann", "hello")
    named = [{"user": "ann", "key": "hello", "problem": "unindexed"}]
    for step in ({"Step": "check"}, {"Step": "rebuild"}):
        found = handle("migrate", step)
        assert found == CHECKED | {
            "dry_run": True, "schedules": 1, "differences": 1, "mended": 0, "found": named,
        }  # fmt: skip
    rebuild = {"Step": "rebuild", "DryRun": False, "Who": "arn:ann", "Why": "drift"}
    assert handle("migrate", rebuild)["mended"] == 1
    assert handle("migrate", {"Step": "check"})["differences"] == 0
    found = {one.verb: one for one in store.shelf.operations(NEWEST, 9)}
    assert (found["rebuild"].who, found["rebuild"].why) == ("arn:ann", "drift")
    assert found["rebuild"].outcome == "done"


def test_a02_an_operator_verifies_a_span_by_a_step(handle: Handle, store: Store) -> None:
    store.schedules.put(Schedule("ann", "daily", "@daily", "jobs", "clean"))
    found = handle("migrate", {"Step": "verify"})
    assert (found["schedules"], found["faults"], found["place"]) == (1, 0, None)


def test_o01_a_migration_is_recorded_if_somebody_asks_for_it(handle: Handle, store: Store) -> None:
    handle("migrate", {"Step": "schema"})
    assert store.shelf.operations(NEWEST, 9) == []
    handle("migrate", {"Step": "schema", "Who": "arn:ann"})
    assert [one.verb for one in store.shelf.operations(NEWEST, 9)] == ["migrate"]


def test_every_recorded_event_is_tried_here() -> None:
    assert {path.stem for path in EVENTS.iterdir()} == USED


@pytest.mark.parametrize("name", ["scheduler", "rule"])
def test_t01_either_schedule_of_eventbridge_makes_a_tick(handle: Handle, name: str) -> None:
    report = handle("tick", event(name))
    assert (report["claimed"], report["failed"]) == (0, 0)


def test_an_operators_call_reaches_the_user_in_the_path(handle: Handle, store: Store) -> None:
    answer = handle("schedules", event("operators-iam"))
    assert answer["statusCode"] == 201
    assert store.schedules.get("ann", "hello")


def test_a_users_call_reaches_the_subject_of_the_token(handle: Handle, store: Store) -> None:
    given = event("users-cognito")
    assert handle("schedules", given)["statusCode"] == 201
    assert store.schedules.get(given["requestContext"]["authorizer"]["claims"]["sub"], "hello")


def test_metrics_that_are_turned_off_are_never_printed(
    handle: Handle, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(250):
        assert handle("dispatch", event("dispatch-iam"))["statusCode"] == 404
    assert "_aws" not in capsys.readouterr().out


def authorized(granted: object, **changes: object) -> dict[str, Any]:
    """Return the call of a user for whom a team's own authorizer vouches, with the authorizer's
    answer.
    """
    given = event("users-lambda")
    given["requestContext"]["authorizer"] = granted
    return given | changes


def test_a_users_call_reaches_the_principal_that_a_function_names(
    handle: Handle, store: Store
) -> None:
    assert handle("schedules", event("users-lambda"))["statusCode"] == 201
    assert [one.key for one in store.schedules.list("ann").schedules] == ["hello"]
    assert store.schedules.list("bob").schedules == ()


@pytest.mark.parametrize(
    "granted",
    [
        None,
        {},
        {"principalId": None},
        {"principalId": "", "sub": "bob"},
        {"integrationLatency": 312, "user": "bob", "claims": '{"sub": "bob"}'},
        {"claims": {"username": "bob"}, "principalId": "bob"},
    ],
)
def test_whom_no_function_names_is_nobody(handle: Handle, store: Store, granted: object) -> None:
    assert handle("schedules", authorized(granted))["statusCode"] == 401
    assert store.schedules.list("bob").schedules == ()


@pytest.mark.parametrize("principal", ["bob/theirs", "../bob", "..", "bob\x00", "b" * 200])
def test_d05_a_principal_that_no_user_can_be_is_refused(
    handle: Handle, store: Store, principal: str
) -> None:
    answer = handle("schedules", authorized({"principalId": principal}))
    assert answer["statusCode"] == 400
    assert json.loads(answer["body"])["error"] == "invalid_schedule_id"


def test_a_principal_of_a_function_opens_no_operators_route(handle: Handle, store: Store) -> None:
    given = authorized({"principalId": "ann"}, path="/api/users/bob/schedules/hello")
    assert handle("schedules", given)["statusCode"] == 403
    assert store.schedules.list("bob").schedules == ()


def test_d01_a_signed_call_dispatches(handle: Handle, store: Store, clock: Clock) -> None:
    handle("schedules", event("operators-iam"))
    clock.now = NINE + 2_000
    assert handle("dispatch", event("dispatch-iam"))["statusCode"] == 202
    (ended,) = store.ledger.find("ann", "hello")
    assert ended.nominal_at == NINE


@pytest.mark.parametrize("claim", ["aud", "client_id"])
@pytest.mark.parametrize(
    ("clients", "status"), [("", 201), ("ours", 201), ("other,ours", 201), ("other", 403)]
)
def test_of_a_pool_the_tokens_of_the_named_clients_are_taken(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, claim: str, clients: str, status: int
) -> None:
    monkeypatch.setenv("DUETICK_USER_CLIENTS", clients)
    given = event("users-cognito")
    claims = given["requestContext"]["authorizer"]["claims"]
    claims.pop("aud", None)
    assert handle("schedules", given)["statusCode"] == (201 if not clients else 403)
    claims[claim] = "ours"
    given["path"] = f"{given['path']}-{claim}"
    assert handle("schedules", given)["statusCode"] == status


def test_a_function_that_names_the_user_names_no_client(
    handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETICK_USER_CLIENTS", "ours")
    assert handle("schedules", event("users-lambda"))["statusCode"] == 201


@pytest.mark.parametrize(
    ("call", "action", "status"),
    [
        ("PUT /schedules/hello", "put_schedule", 201),
        ("DELETE /schedules/none", "delete_schedule", 404),
        ("POST /schedules/none/run", "run_schedule", 404),
        ("GET /export", "export_user", 200),
        ("DELETE ", "erase_user", 200),
    ],
)
def test_an_operators_write_export_and_erase_is_one_line_of_the_log_with_who_did_it(
    handle: Handle, caplog: pytest.LogCaptureFixture, call: str, action: str, status: int
) -> None:
    method, path = call.split(" ")
    given = event("operators-iam") | {"httpMethod": method, "path": f"/api/users/ann{path}"}
    assert handle("schedules", given)["statusCode"] == status
    (line,) = (vars(one) for one in caplog.records if one.message == "operator")
    assert (line["action"], line["status"]) == (action, status)
    assert (line["method"], line["path"]) == (method, given["path"])
    assert line["who"] == given["requestContext"]["identity"]["userArn"]
    assert "good morning" not in str(line)


def test_what_an_operator_reads_and_what_a_user_writes_is_no_such_line(
    handle: Handle, caplog: pytest.LogCaptureFixture
) -> None:
    handle("schedules", event("users-cognito"))
    handle("schedules", event("operators-iam") | {"httpMethod": "GET"})
    assert not [one for one in caplog.records if one.message == "operator"]


def test_an_operators_write_that_breaks_names_who_did_it_too(
    handle: Handle, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("no such disk")

    monkeypatch.setattr("duetick.core.schedules.UserSchedules.replace", breaks)
    assert handle("schedules", event("operators-iam"))["statusCode"] == 500
    (line,) = (vars(one) for one in caplog.records if one.message == "a route failed")
    assert line["who"] == event("operators-iam")["requestContext"]["identity"]["userArn"]


NOBODY = {"sourceIp": "203.0.113.7", "userArn": None}


@pytest.mark.parametrize("identity", [None, {}, NOBODY, {"userArn": ""}])
@pytest.mark.parametrize("auth", ["iam", "secret"])
def test_an_operators_call_that_nobody_signed_is_refused(
    handle: Handle,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    identity: object,
    auth: str,
) -> None:
    """Also where the gateway was told to let everyone in."""
    monkeypatch.setenv("DUETICK_DISPATCH_AUTH", auth)
    given = event("operators-iam")
    given["requestContext"]["identity"] = identity
    assert handle("schedules", given)["statusCode"] == 403
    assert store.schedules.get("ann", "hello") is None


@pytest.mark.parametrize("identity", [None, {}, NOBODY, {"userArn": ""}])
def test_d02_a_dispatch_that_nobody_signed_is_refused_in_iam_mode(
    handle: Handle, store: Store, clock: Clock, identity: object
) -> None:
    handle("schedules", event("operators-iam"))
    clock.now = NINE + 2_000
    given = event("dispatch-iam")
    given["requestContext"]["identity"] = identity
    assert handle("dispatch", given)["statusCode"] == 401
    given["headers"]["Authorization"] = "Bearer anything"
    assert handle("dispatch", given)["statusCode"] == 401
    assert not store.ledger.find("ann", "hello")


@pytest.mark.parametrize(
    ("secret", "status"),
    [("9d2f6b1c4e8a7053f1b6c2d9e4a80735", 202), (f"{'another':-<32}", 401), ("", 401)],
)
def test_d17_secret_mode_asks_for_the_secret(
    handle: Handle, clock: Clock, monkeypatch: pytest.MonkeyPatch, secret: str, status: int
) -> None:
    handle("schedules", event("operators-iam"))
    clock.now = NINE + 2_000
    monkeypatch.setenv("DUETICK_DISPATCH_AUTH", "secret")
    monkeypatch.setenv("DUETICK_DISPATCH_SECRET", secret)
    assert handle("dispatch", event("dispatch-secret"))["statusCode"] == status


def test_by_hand_it_takes_both_steps_and_says_what_it_did(store: Store) -> None:
    done = load_and_handle("migrate", {})
    store.check_schema()
    declared = [one.key for one in wiring.flows().static()]
    assert done == {
        "schema": "up to date",
        "schedules": {"put": declared, "kept": [], "removed": []},
        "gone": asdict(Gone()),
    }


def test_t12_a_count_that_fails_fails_no_deployment(
    handle: Handle,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    down = Mock(side_effect=StoreUnavailable("The database did not answer."))
    monkeypatch.setattr(store.shelf, "every_book", down)
    done = handle("migrate", {})
    assert (done["schema"], done["gone"]) == ("up to date", "not counted; the log says why")
    assert "gone_failed" in [vars(line).get("action") for line in caplog.records]


def test_t12_each_hour_it_counts_what_is_active_and_names_what_should_be(
    handle: Handle, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    handle("schedules", event("operators-iam"))
    assert handle("migrate", event("audit")) == asdict(Audit(active=1))
    store.index.remove("ann", "hello")
    assert handle("migrate", event("audit")) == asdict(Audit(unindexed=1))
    (line,) = (line for line in caplog.records if vars(line).get("action") == "unindexed")
    assert line.message == "unindexed: It is enabled and has no row, so it never fires. " + (
        "A rebuild gives it one."
    )
    assert (vars(line)["user"], vars(line)["key"]) == ("ann", "hello")


@pytest.mark.parametrize(("most", "verified"), [("100", True), ("0", False)])
def test_a02_each_hour_it_verifies_so_many_schedules_or_none(
    most: str, verified: bool, handle: Handle, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETICK_VERIFIED_PER_HOUR", most)
    store.schedules.put(Schedule("ann", "daily", "0 9 * * *", "jobs", "clean"))
    assert handle("migrate", event("audit")) == asdict(Audit(active=1))
    assert (Progress.load(store).verified_until is not None) is verified


def test_l01_each_hour_it_purges_what_is_done(handle: Handle, store: Store, clock: Clock) -> None:
    leaves = Policies(after_completion="delete")
    once = Schedule("ann", "once", "at(2026-12-01T09:00:00)", "jobs", "clean", policies=leaves)
    store.schedules.put(once)
    clock.now = NINE
    assert store.index.claim_due(NINE)
    assert handle("migrate", event("audit")) == asdict(Audit())
    assert store.schedules.get("ann", "once")
    clock.now += 86_400_000
    store.ledger.claim_waiting(clock.now)
    handle("migrate", event("audit"))
    assert store.schedules.get("ann", "once") is None


def test_t12_each_hour_every_book_is_read_once(
    handle: Handle, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the audit and for the flows that are gone."""
    handle("schedules", event("operators-iam"))
    walk = Mock(wraps=store.shelf.every_book)
    monkeypatch.setattr(store.shelf, "every_book", walk)
    handle("migrate", event("audit"))
    assert walk.call_count == 1


@pytest.mark.parametrize(("seconds", "warned"), [("1", False), ("60", False), ("1800", True)])
def test_t13_an_expression_tighter_than_the_cadence_is_warned_of(
    handle: Handle,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    seconds: str,
    warned: bool,
) -> None:
    paced = Store(store.shelf, store.now, tick_seconds=int(seconds))
    monkeypatch.setattr(wiring, "store", lambda: paced)
    given = event("operators-iam")
    given["body"] = given["body"].replace("0 9 * * *", "*/5 * * * *")
    answer = handle("schedules", given)
    assert answer["statusCode"] == 201
    told = str(answer.get("headers") or answer.get("multiValueHeaders"))
    assert ("a tick comes each" in told) is warned


def test_j10_a_purge_that_is_not_done_goes_on_in_another_invocation(
    handle: Handle, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to twelve of them, under one name: the lock is theirs."""
    called: list[dict[str, Any]] = []
    monkeypatch.setattr(invoking, "call_this", called.append)
    monkeypatch.setattr(purging, "purge", lambda *_, **__: Purged(retired=1, more=True))
    ticking = count(0, 40)
    within = partial(purging.purge_within, elapsed=lambda: next(ticking))
    monkeypatch.setattr(purging, "purge_within", within)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    first = handle("migrate", {"Step": "purge"})
    assert first["goes_on"] is True
    for chain in range(2, 13):
        assert called[-1]["Chain"] == chain
        assert handle("migrate", called[-1])["goes_on"] is (chain < 12)
    assert len(called) == 11
    assert {one["Owner"] for one in called} == {store.locks()[0].owner}
    assert handle("migrate", {"Step": "purge"})["purged"] == "another purge is at work"


def test_o01_a_purge_that_somebody_asked_for_is_recorded_once(
    handle: Handle, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[dict[str, Any]] = []
    monkeypatch.setattr(invoking, "call_this", called.append)
    left = iter((True, False))
    purged = Purged(retired=1)
    monkeypatch.setattr(purging, "purge", lambda *_, **__: purged._replace(more=next(left)))
    ticking = count(0, 1_000)
    within = partial(purging.purge_within, elapsed=lambda: next(ticking))
    monkeypatch.setattr(purging, "purge_within", within)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    handle("migrate", {"Step": "purge", "Who": "ops", "Why": "the disk"})
    handle("migrate", called[0])
    (one,) = store.shelf.operations(NEWEST, 10)
    assert (one.who, one.verb, one.why, one.outcome) == ("ops", "purge", "the disk", "done")


def test_j10_a_purge_that_has_nothing_left_stops(
    handle: Handle, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invoking, "call_this", Mock(side_effect=AssertionError))
    assert handle("migrate", {"Step": "purge"})["goes_on"] is False
    assert store.locks() == []
