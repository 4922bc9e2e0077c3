"""The verdicts of an explanation, each a word that programs may compare."""

from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal[
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
"""The answer in one word. The first thirteen are the reasons of the ledger."""
