"""Random expressions, policies, schedules, occurrences and keys for stores."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from zlib import crc32

from duetick.domain.attempts import SUCCEEDED, CallerKey, Outcome
from duetick.domain.policies import Backoff, Delivery, Misfire, Overlap, Policies, Retry
from duetick.domain.schedule import NewOccurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, NOON, SECOND

START = NOON + 26 * DAY + 12 * HOUR
"""Midnight of 28 March 2027, an hour before Europe's clocks go forward."""
USER = "ada"
CRONS = (
    *("* * * * *", "*/2 * * * *", "1-59/5 * * * *", "*/30 1-3 * * *", "0 * * * *", "30 2 * * *"),
    *("rate(7 minutes)", "rate(1 hour)", "cron(0/10 * * * ? *)"),
    *(
        "days(mon 09:00, sat 23:30, sun 02:30)",
        "at(2027-03-28T00:40:00)",
        "at(2027-03-28T06:00:00)",
    ),
)
ZONES = (None, None, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
OUTCOMES = (
    SUCCEEDED,
    Outcome(State.FAILED, Reason.FAILED, "oops"),
    Outcome(State.FAILED, Reason.REJECTED, "bad"),
    Outcome(State.CANCELLED, Reason.OPERATOR, "stop"),
)


def _hook_of(made: Policies) -> str | None:
    """Name a failure hook in a third of all policies.

    It follows from the other policies: one more draw would change the run of every seed.
    """
    return "tell" if crc32((made.dump() or "").encode()) % 3 == 0 else None


class Chances(Random):
    """Random choices. The same seed makes the same ones."""

    def happens(self, share: float) -> bool:
        """Return True with that probability."""
        return self.random() < share

    def policies(self) -> Policies:
        """Return random policies."""
        start, end = START + self.randrange(4) * HOUR, START + self.randrange(5, 25) * HOUR
        made = Policies(
            delivery=self.choice(list(Delivery)),
            retry=Retry(self.choice(list(Backoff)), self.choice((1, 2, 3)), first=30, longest=60),
            overlap=self.choice(list(Overlap)),
            misfire=self.choice(list(Misfire)),
            grace=self.choice((0, 150, 150, 600)),
            catch_up=self.choice((0, 1, 3, 10)),
            longest_lateness=self.choice((None, None, 100, 900, 4_000)),
            spread=self.choice((0, 0, 0, 30, 200)),
            gap=self.choice(("run", "skip")),
            repeat=self.choice(("first", "both")),
            priority=self.choice((0, 0, 5, -3)),
            timeout=self.choice((25, 25, 5)),
            starts_at=self.choice((None, None, None, start)),
            ends_at=self.choice((None, None, None, None, end)),
            max_runs=self.choice((None, None, None, 1, 2, 4)),
            after_completion=self.choice(("keep", "delete")),
            pause_after=self.choice((None, None, 1, 2)),
        )
        return replace(made, on_failure=_hook_of(made))

    def cron(self, now: int) -> str:
        """Return a random cron, or an `at` that is soon."""
        soon = datetime.fromtimestamp((now + self.choice((60, 600, 4_000)) * SECOND) // 1_000, UTC)
        return self.choice((*CRONS, f"at({soon:%Y-%m-%dT%H:%M:%S})"))

    def schedule(self, key: str, now: int) -> Schedule:
        """Return a random schedule that may be put."""
        return Schedule(
            *(USER, key, self.cron(now), "flow", "act"),
            timezone=self.choice(ZONES),
            input={"x": self.randrange(3)},
            enabled=self.happens(0.85),
            policies=self.policies(),
            labels={"l": "1"} if self.happens(0.3) else {},
            external_id=f"ext-{key}" if self.happens(0.3) else None,
        )

    def caller_key(self, share: float) -> CallerKey | None:
        """Return one of two caller's keys, with that probability."""
        name = f"k{self.randrange(2)}"
        return CallerKey("flow", name, 60 * SECOND) if self.happens(share) else None

    def brought(self, key: str, now: int, runs: int) -> NewOccurrence:
        """Return an occurrence to bring: a new run, the last run again, or a nominal time."""
        origin = self.choice((f"run:{runs}", f"call:{runs}", f"run:{max(1, runs - 1)}", "schedule"))
        at = now if origin != "schedule" else (now // MINUTE - self.randrange(6)) * MINUTE
        return NewOccurrence(
            *(USER, key, "* * * * *", None, at),
            origin=origin,
            due_at=now,
            flow="flow",
            policies=self.policies(),
        )
