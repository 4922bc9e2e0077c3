"""A history shows users the message that the action chose, and operators the error it raised."""

from typing import TypedDict

import pytest
from duetick import ActionFailed, Context, Flow
from duetick.client import ApiError, Client, Fields
from flows.reminders import reminders

from tests.integration.local_product import NINE, Product

MINUTE = 60_000
TRIED = {"delivery": "at_least_once", "retry": {"backoff": "fixed", "attempts": 3, "first": 60}}
CARD: Fields = {"cron": "0 9 * * *", "flow": "reminders", "action": "pay"}


class Asked(TypedDict, total=False):
    """The filters of a history."""

    state: str
    since: str
    until: str


def declined(_given: object, ctx: Context) -> None:
    """Raise an error that nobody chose at the first attempt; tell the user the reason at the
    second.
    """
    if ctx.attempt == 1:
        raise KeyError("row 7 of stripe_cards")
    try:
        raise TimeoutError("stripe:4242 did not answer")
    except TimeoutError as why:
        raise ActionFailed("Your card was declined.") from why


def fires(product: Product, monkeypatch: pytest.MonkeyPatch, times: int) -> Client:
    """Make a number of attempts, a minute apart. Return the user."""
    shop = Flow("reminders")
    shop.action("pay", policies=TRIED)(declined)
    monkeypatch.setitem(reminders.actions, "pay", shop.actions["pay"])
    client = product.client()
    client.put("card", CARD)
    for attempt in range(times):
        product.clock.now = NINE + attempt * MINUTE
        product.tick()
    return client


def test_j07_a_user_reads_when_each_attempt_failed_and_when_the_next_one_is(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = fires(running, monkeypatch, 2).history("card")
    assert line["failures"] == [
        {"attempt": 1, "at": "2026-12-01T09:00:00Z", "error": "The action failed."},
        {"attempt": 2, "at": "2026-12-01T09:01:00Z", "error": "Your card was declined."},
    ]
    assert (line["state"], line["nextAttemptAt"]) == ("retrying", "2026-12-01T09:02:00Z")
    assert line["error"] == "Your card was declined."


def test_j07_an_operator_reads_what_was_raised(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    fires(running, monkeypatch, 3)
    operator = running.operator("you")
    (line,) = operator.history("card")
    declined_because = (
        "ActionFailed: Your card was declined. "
        "(because of TimeoutError: stripe:4242 did not answer)"
    )
    assert [one["error"] for one in line["failures"]] == [
        "KeyError: 'row 7 of stripe_cards'",
        declined_because,
        declined_because,
    ]
    assert (line["state"], line["nextAttemptAt"], line["error"]) == (
        "dead",
        None,
        declined_because,
    )
    assert operator.export()["history"][0]["failures"] == line["failures"]


def test_j07_nothing_that_was_raised_is_shown_to_a_user(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fires(running, monkeypatch, 3)
    for path in ("/api/schedules/card/history", "/api/schedules/card", "/api/schedules"):
        told = str(client.call("GET", path).body)
        assert "stripe" not in told
        assert "KeyError" not in told


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"state": "retrying"}, 1),
        ({"state": "dead"}, 0),
        ({"since": "2026-12-01T09:00:00Z"}, 1),
        ({"since": "2026-12-01T09:00:01Z"}, 0),
        ({"until": "2026-12-01T09:00:00Z"}, 0),
        ({"until": "2026-12-01T09:00:00.001Z", "state": "retrying"}, 1),
    ],
)
@pytest.mark.parametrize("operator", [False, True])
def test_j07_a_history_is_filtered_by_state_and_time(
    running: Product,
    monkeypatch: pytest.MonkeyPatch,
    asked: Asked,
    found: int,
    *,
    operator: bool,
) -> None:
    client = fires(running, monkeypatch, 1)
    asking = running.operator("you") if operator else client
    assert len(list(asking.history("card", **asked))) == found


@pytest.mark.slow
def test_j07_a_history_is_told_and_filtered_on_each_store(
    anywhere: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fires(anywhere, monkeypatch, 3)
    (line,) = client.history("card", state="dead", since="2026-12-01T09:00:00Z")
    assert [one["attempt"] for one in line["failures"]] == [1, 2, 3]
    assert list(client.history("card", state="succeeded")) == []


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"state": "lost"}, "state: expected"),
        ({"since": "soon"}, "from: expected a time like"),
        ({"until": "soon"}, "to: expected a time like"),
    ],
)
def test_j07_a_filter_that_cannot_be_read_is_told(client: Client, asked: Asked, says: str) -> None:
    client.put("card", {**CARD, "action": "remind", "input": {"text": "x"}})
    with pytest.raises(ApiError, match=says):
        list(client.history("card", **asked))


def test_j02_the_history_shows_the_labels_of_the_schedule_as_its_attempt_began(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = running.client()
    client.put("card", CARD | {"action": "remind", "input": {"text": "x"}, "labels": {"by": "ann"}})
    running.clock.now = NINE
    running.tick()
    client.change("card", {"labels": {"by": "bob"}})
    (line,) = client.history("card")
    (seen,) = running.operator("you").history("card")
    assert line["labels"] == seen["labels"] == {"by": "ann"}
