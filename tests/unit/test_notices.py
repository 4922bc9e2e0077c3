"""T-12: a mass is one notice for each kind and flow, with its count and the first names."""

import json
import shlex
from dataclasses import replace
from typing import get_args

import pytest
from duetick.cli.main import _parser
from duetick.core.notices import (
    MOST_FLOWS,
    MOST_NAMED,
    TITLES,
    Notice,
    Notices,
    Subject,
    look,
    notice_json,
)
from duetick.domain.identity import job_key
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Trouble

NINE = 1_796_115_600_000
DEAD = Occurrence(
    "ann", "k", "* * * * *", None, NINE, flow="mail", state=State.DEAD, reason=Reason.FAILED
)


def test_t12_a_mass_is_one_notice_for_each_kind_and_flow() -> None:
    notices = Notices()
    for number in range(1_000):
        notices.tell("dead", replace(DEAD, key=f"k{number}"))
        notices.tell("late", replace(DEAD, key=f"k{number}", reason=None))
    notices.tell("dead", replace(DEAD, flow="other", reason=Reason.LOST))
    dead, other, late = notices.take()
    assert (dead.trouble, dead.flow, dead.count, dead.reasons) == (
        "dead", "mail", 1_000, {"failed": 1_000},
    )  # fmt: skip
    assert [one.key for one in dead.first] == [f"k{number}" for number in range(MOST_NAMED)]
    assert (other.flow, other.count, other.reasons) == ("other", 1, {"lost": 1})
    assert (late.trouble, late.count, late.reasons) == ("late", 1_000, {})
    assert notices.take() == []


def test_t12_rows_of_a_thousand_flows_are_no_thousand_notices() -> None:
    notices = Notices()
    for number in range(2_000):
        notices.tell("poisoned", replace(DEAD, flow=f"f{number % 1_000:03}"))
    notices.tell("dead", DEAD)
    found = notices.take()
    assert len(found) == MOST_FLOWS + 2
    assert sum(one.count for one in found if one.trouble == "poisoned") == 2_000
    (others,) = [one for one in found if one.flow == ""]
    assert others.count == 2 * (1_000 - MOST_FLOWS)


def test_t12_a_notice_says_who_and_how_to_see_more() -> None:
    notices = Notices()
    notices.tell("dead", DEAD)
    (notice,) = notices.take()
    assert notice_json(notice, at=NINE, stack="duetick", by="tick_1") == {
        "version": 1,
        "kind": "dead",
        "stack": "duetick",
        "by": "tick_1",
        "at": "2026-12-01T09:00:00Z",
        "flow": "mail",
        "count": 1,
        "reasons": {"failed": 1},
        "first": [
            {
                "user": "ann",
                "key": "k",
                "occurrence": DEAD.id,
                "nominalFireTime": "2026-12-01T09:00:00Z",
                "reason": "failed",
            }
        ],
        "look": [
            "duetick occurrences list --stack duetick --state dead --flow mail "
            "--from 2026-12-01T09:00:00Z",
            "duetick schedules history k --stack duetick --user ann",
        ],
    }


def test_a_command_of_a_notice_is_quoted_for_a_shell() -> None:
    notice = Notice("poisoned", "a b")
    notice.add(Subject("ann's", "$(x)"))
    assert look(notice, "") == [
        "duetick occurrences list --state dead --flow 'a b'",
        "duetick schedules history '$(x)' --user 'ann'\"'\"'s'",
    ]


@pytest.mark.parametrize(
    ("user", "key", "asked"),
    [
        ("ann", "k", "schedules history k --user ann"),
        ("", "mail/nightly", "occurrences list --user '' --key mail/nightly"),
        ("ann", job_key("occ_1f"), "jobs history occ_1f --user ann"),
    ],
)
def test_t12_a_notice_asks_for_whom_it_is_about(user: str, key: str, asked: str) -> None:
    """Neither a static schedule nor a job is a schedule of a user who could ask."""
    notice = Notice("auto_paused", "mail")
    notice.add(Subject(user, key))
    assert look(notice, "") == [f"duetick {asked}"]


@pytest.mark.parametrize("stack", ["", "duetick"])
def test_the_commands_of_a_notice_are_commands(stack: str) -> None:
    for trouble in get_args(Trouble):
        notice = Notice(trouble, "mail")
        notice.add(Subject("ann", "k", "occ_1", NINE, "failed"))
        for command in look(notice, stack):
            assert _parser().parse_args(shlex.split(command)[1:]).command


def test_a_notice_of_the_longest_names_fits_into_an_event() -> None:
    """PutEvents takes 256 KB."""
    notice = Notice("dead", "f" * 64)
    for _ in range(1_000):
        notice.add(Subject("\U0001f600" * 128, "\U0001f600" * 128, "o" * 64, NINE, "failed"))
    assert len(json.dumps(notice_json(notice, at=NINE, stack="s" * 128, by="t" * 128))) < 100_000


def test_each_kind_of_trouble_has_its_title() -> None:
    kinds = get_args(Trouble)
    assert set(TITLES) == set(kinds)
    assert len(set(TITLES.values())) == len(kinds)
