"""A page's cursor is read back, and nothing else is taken for one."""

import base64

import pytest
from duetick.domain.errors import InvalidCursor
from duetick.stores.paging import make_cursor, read_cursor


@pytest.mark.parametrize("key", ["digest", "a/b", "日本", "100%"])
def test_j07_a_cursor_is_read_as_it_was_made(key: str) -> None:
    assert read_cursor(make_cursor(key)) == key


@pytest.mark.parametrize("cursor", ["@", "!!!", base64.urlsafe_b64encode(b"a\0b").decode(), "_w=="])
def test_j07_what_no_page_carried_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor, match="begin without one"):
        read_cursor(cursor)
