"""The shipped nightly clean-up is for the application alone."""

from duetick.client import Client, Fields
from duetick.domain.schedule import Schedule

from tests.integration.api.asking import HELLO, MINUTE, refused, states
from tests.integration.local_product import NINE, Product

CLEAN_UP: Fields = {"cron": "0 9 * * *", "flow": "digests", "action": "clean_up"}


def test_no_user_puts_the_nightly_clean_up(client: Client) -> None:
    assert refused(client.create, CLEAN_UP) == (400, "invalid_schedule")
    assert refused(client.put, "mine", CLEAN_UP) == (400, "invalid_schedule")
    client.put("mine", HELLO)
    change: Fields = {"flow": "digests", "action": "clean_up", "input": None}
    assert refused(client.change, "mine", change) == (400, "invalid_schedule")
    assert client.get("mine").body["action"] == "remind"


def test_an_operator_puts_it_and_the_user_neither_runs_it_nor_moves_it(
    running: Product, client: Client
) -> None:
    operator = running.operator("you")
    operator.put("theirs", CLEAN_UP)
    assert refused(client.run, "theirs") == (400, "invalid_schedule")
    assert refused(client.change, "theirs", {"cron": "* * * * *"}) == (400, "invalid_schedule")
    assert operator.run("theirs")["state"] == "succeeded"
    running.clock.now = NINE
    assert running.tick()["delivered"] == 1


def test_d09_one_that_a_user_had_before_ends_rejected(running: Product, client: Client) -> None:
    running.store.schedules.put(
        Schedule("you", "old", "* * * * *", "digests", "clean_up"), now=running.clock.now
    )
    running.clock.now += MINUTE
    running.tick()
    assert states(client, "old") == [("dead", "rejected")]
    assert refused(client.run, "old") == (400, "invalid_schedule")
    client.pause("old")
    assert refused(client.resume, "old") == (400, "invalid_schedule")
    client.delete("old")
