"""The cursor of a page is read back, and nothing else is taken for one."""

import base64
import json
from typing import Final

import pytest
from duetick.domain.errors import InvalidCursor
from duetick.domain.paging import make_cursor, read_key, read_name, read_place, read_walk


def cursor_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


HALF: Final = "\ud800"
"""Half of a character: JSON can say it, and no store can."""


@pytest.mark.parametrize("key", ["digest", "a/b", "日本", "100%"])
def test_j07_a_cursor_is_read_as_it_was_made(key: str) -> None:
    assert read_key(make_cursor(key)) == key
    assert read_place("ada", make_cursor(5, key, "run:1")) == ("ada", key, 5, "run:1")


@pytest.mark.parametrize(
    "cursor",
    [
        *("@", "!!!", "_w==", ""),
        *map(cursor_of, (["a\0b"], ["k" * 129], [1], ["a", "b"], "a", {}, [""], [HALF])),
    ],
)
def test_j07_what_no_page_of_schedules_carried_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_key(cursor)


@pytest.mark.parametrize(
    "place",
    [
        *([-1, "k", "run:1"], [10**16, "k", "run:1"], [True, "k", "run:1"], ["5", "k", "run:1"]),
        *([5, "", "run:1"], [5, None, "run:1"], [5, "a//b", "run:1"], [5, "k", ""], [5, "k", None]),
        *([5, "k", "o" * 257], [5, "k", "a\0b"], [5, "k"], [5, "k", "run:1", 6], [[5], "k", "r"]),
    ],
)
def test_j07_what_no_page_of_a_history_carried_is_refused(place: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_place("ada", cursor_of(place))


def test_j07_a_page_of_jobs_begins_after_a_job_and_one_of_schedules_after_a_schedule() -> None:
    of_job, of_schedule = make_cursor("job:0198f0"), make_cursor("digest")
    assert read_key(of_job, of_jobs=True) == "job:0198f0"
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_key(of_job)
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_key(of_schedule, of_jobs=True)


@pytest.mark.parametrize("place", [["ada", HALF], [HALF, "k"], ["a\0", "k"], [5, "k"], ["ada"]])
def test_a_walk_over_rows_goes_on_after_a_name_that_a_store_can_have(place: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_name(cursor_of(place))


@pytest.mark.parametrize(
    "place",
    [
        *([-3, "ada", "k", 5], [10**9, "ada", "k", 5], [True, "ada", "k", 5], ["3", "a", "k", 5]),
        *([3, "ada", "k", -5], [3, "ada", "k", 1.5], [3, HALF, "k", 5], [3, "ada", "k\0", 5]),
    ],
)
def test_a_walk_over_parts_goes_on_in_a_part_that_may_be(place: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_walk(cursor_of(place))
