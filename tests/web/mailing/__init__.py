"""The flows with which the pages are tested. The input of an action says what it does."""

from typing import Final

from duetick import ActionFailed, Context, Flow

HOSTILE: Final = "<img src=x onerror=\"window.hacked='error'\">"

mailing = Flow("mailing")
billing = Flow("billing", policies={"delivery": "at_least_once", "retry": {"first": 3_600}})


@mailing.action("send")
def send(order: dict[str, str], ctx: Context) -> None:
    """Send a mail, or fail with a text."""
    if failure := order.get("fails"):
        raise ActionFailed(failure)


@mailing.action("tell", users=False)
def tell(_order: dict[str, object], ctx: Context) -> None:
    """Tell of a failure."""


@billing.action("charge")
def charge(order: dict[str, str], ctx: Context) -> None:
    """Charge a card, or fail with a text."""
    if failure := order.get("fails"):
        raise ActionFailed(failure)


mailing.schedule("nightly", cron="0 3 * * *", timezone="Europe/Berlin", action="send", input={})
