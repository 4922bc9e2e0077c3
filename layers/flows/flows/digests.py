"""A weekly digest for subscribers, and a nightly job of the application.

A subscription is a schedule: its key names the topic, its input says what to send, and its zone
says when it is nine o'clock.
"""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

digests = Flow("digests")
logger = logging.getLogger("duetick.flows.digests")


@dataclass(frozen=True, slots=True)
class Digest:
    """The topic of a subscription, and the address of its digests."""

    topic: str
    email: str

    def __post_init__(self) -> None:
        if "@" not in self.email:
            raise ValueError(f"expected an address such as ann@example.org, got {self.email!r}.")


@digests.action("send_digest")
def send_digest(digest: Digest, ctx: Context) -> None:
    """Send a digest. A retry has the same occurrence id: use it as the id of the mail."""
    logger.info("digest of %s to %s, as %s", digest.topic, digest.email, ctx.occurrence_id)


@digests.action("clean_up", users=False)
def clean_up(_: None, ctx: Context) -> None:
    """Delete old digests."""
    logger.info("cleaning up for %s", ctx.principal.user_id)


digests.schedule("nightly", cron="0 3 * * *", timezone="Europe/Berlin", action="clean_up")
