"""The cursor of a page is read back, and nothing else is taken for one."""

import base64
import json

import pytest
from duetick.domain.errors import InvalidCursor
from duetick.domain.paging import make_cursor, read_key, read_place


def cursor_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize("key", ["digest", "a/b", "日本", "100%"])
def test_j07_a_cursor_is_read_as_it_was_made(key: str) -> None:
    assert read_key(make_cursor(key)) == key
    assert read_place("ada", make_cursor(5, key, "run:1")) == ("ada", key, 5, "run:1")


@pytest.mark.parametrize(
    "cursor",
    ["@", "!!!", "_w==", "", *map(cursor_of, (["a\0b"], ["k" * 129], [1], ["a", "b"], "a", {}))],
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
