"""The verdicts of an explanation, each a word that programs may compare."""

from typing import Literal, TypeAlias

EndReason: TypeAlias = Literal[
    "fired",
    "failed",
    "lost",
    "rejected",
    "poisoned",
    "overlap",
    "missed",
    "paused",
    "disabled",
    "schedule_deleted",
    "superseded",
    "quota",
    "operator",
]
"""The reason of an end, as a word: the values of `states.Reason`."""

Verdict: TypeAlias = Literal[
    EndReason,
    "running",
    "will_retry",
    "will_fire",
    "may_overlap",
    "not_a_fire_time",
    "skipped_by_clock",
    "repeated_by_clock",
    "outside_window",
    "no_schedule",
    "unreadable",
    "backfilled",
    "unindexed",
    "unaccounted",
    "unknown",
]
"""The answer in one word."""
