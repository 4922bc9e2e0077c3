"""A weekly digest that users subscribe to, and a nightly job that is there for everyone.

The subscription is a schedule: its key says of what, its input what to send, its zone when nine
o'clock is.
"""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

digests = Flow("digests")
logger = logging.getLogger("duetick.flows.digests")


@dataclass(frozen=True, slots=True)
class Digest:
    """What a user subscribed to."""

    topic: str
    email: str

    def __post_init__(self) -> None:
        if "@" not in self.email:
            raise ValueError(f"expected an address such as ann@example.org, got {self.email!r}.")


@digests.action("send_digest")
def send_digest(digest: Digest, ctx: Context) -> None:
    """Send what is new. Its identity is the same if it is tried again: mail it by that."""
    logger.info("digest of %s to %s, as %s", digest.topic, digest.email, ctx.occurrence_id)


@digests.action("clean_up")
def clean_up(_: None, ctx: Context) -> None:
    """Drop what nobody reads any more."""
    logger.info("cleaning up for %s", ctx.principal.user_id)


digests.schedule("nightly", cron="0 3 * * *", timezone="Europe/Berlin", action="clean_up")
