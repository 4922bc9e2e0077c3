"""What is put into stores at random: expressions, policies, schedules, occurrences, keys."""

from datetime import UTC, datetime
from random import Random

from duetick.domain.policies import Backoff, Delivery, Misfire, Overlap, Policies, Retry
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.ports import SUCCEEDED, CallerKey, Outcome
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, NOON, SECOND

START = NOON + 26 * DAY + 12 * HOUR
"""Midnight of 28 March 2027, an hour before Europe's clocks go forward."""
USER = "ada"
CRONS = (
    *("* * * * *", "*/2 * * * *", "1-59/5 * * * *", "*/30 1-3 * * *", "0 * * * *", "30 2 * * *"),
    *("rate(7 minutes)", "rate(1 hour)", "cron(0/10 * * * ? *)"),
    "days(mon 09:00, sat 23:30, sun 02:30)",
)
ZONES = (None, None, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
OUTCOMES = (
    SUCCEEDED,
    Outcome(State.FAILED, Reason.FAILED, "oops"),
    Outcome(State.FAILED, Reason.REJECTED, "bad"),
    Outcome(State.CANCELLED, Reason.OPERATOR, "stop"),
)


class Chances(Random):
    """The same from the same seed."""

    def happens(self, share: float) -> bool:
        """So often."""
        return self.random() < share

    def policies(self) -> Policies:
        """Any of each."""
        start, end = START + self.randrange(4) * HOUR, START + self.randrange(5, 25) * HOUR
        return Policies(
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
        )

    def cron(self, now: int) -> str:
        """Any, or one instant that is soon."""
        soon = datetime.fromtimestamp((now + self.choice((60, 600, 4_000)) * SECOND) // 1_000, UTC)
        return self.choice((*CRONS, f"at({soon:%Y-%m-%dT%H:%M:%S})"))

    def schedule(self, key: str, now: int) -> Schedule:
        """One that may be put."""
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
        """One of two, so often."""
        name = f"k{self.randrange(2)}"
        return CallerKey("flow", name, 60 * SECOND) if self.happens(share) else None

    def brought(self, key: str, now: int, runs: int) -> Occurrence:
        """What a caller brings: a run, once more the one before, or one of the schedule's times."""
        origin = self.choice((f"run:{runs}", f"call:{runs}", f"run:{max(1, runs - 1)}", "schedule"))
        at = now if origin != "schedule" else (now // MINUTE - self.randrange(6)) * MINUTE
        return Occurrence(
            *(USER, key, "* * * * *", None, at),
            origin=origin,
            flow="flow",
            due_at=now,
            policies=self.policies(),
            labels={"by": "me"},
            priority=2,
        )
