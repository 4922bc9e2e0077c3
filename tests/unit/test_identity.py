"""D-05: what an id may hold, and how it survives a path."""

from urllib.parse import quote

import pytest
from duetick.domain.identity import (
    LONGEST_ID,
    InvalidId,
    check_id,
    check_key,
    from_path,
    schedule_id,
    split_id,
    to_path,
)
from hypothesis import given
from hypothesis import strategies as st

HOSTILE = ["100%", "a%2Fb", "日本", "c\\d", "auth0|Abc", "k?#&= +", "~41", "%7E41", "a~2Fb", "..."]
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40)
IN_PATH = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


@pytest.mark.parametrize("name", HOSTILE)
def test_d05_a_hostile_user_and_key_are_allowed(name: str) -> None:
    check_key(name, name)


@pytest.mark.parametrize("name", HOSTILE)
def test_d05_a_hostile_id_survives_the_path(name: str) -> None:
    assert from_path(to_path(f"{name}/{name}")) == f"{name}/{name}"


@given(TEXT)
def test_d05_any_id_survives_the_path(name: str) -> None:
    assert from_path(to_path(name)) == name


@given(TEXT)
def test_d05_a_path_holds_only_what_no_gateway_rewrites(name: str) -> None:
    assert set(to_path(name)) <= set(IN_PATH)


@given(TEXT)
def test_d05_a_gateway_that_escapes_the_path_once_more_does_no_harm(name: str) -> None:
    assert from_path(quote(to_path(name), safe="")) == name


def test_d05_a_path_whose_escapes_are_not_text_is_refused() -> None:
    for path in ("%FF", "~FF"):
        with pytest.raises(InvalidId, match="not UTF-8"):
            from_path(path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "./a", "a//b", "/a", "a/"])
def test_d05_empty_and_dotted_parts_are_refused(name: str) -> None:
    with pytest.raises(InvalidId):
        check_key("ada", name)


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "\x7f", "\x85", "\ud800"])
def test_d05_control_characters_and_surrogates_are_refused(name: str) -> None:
    with pytest.raises(InvalidId, match=r"U\+"):
        check_key("ada", name)
    with pytest.raises(InvalidId, match=r"U\+"):
        check_key(name, "key")


def test_d05_further_slashes_belong_to_the_key() -> None:
    check_key("ada", "a/b/c")
    assert split_id("reminders", "ada/a/b/c") == ("ada", "a/b/c")


def test_d05_a_user_has_no_slash() -> None:
    with pytest.raises(InvalidId, match="slash"):
        check_key("ada/bob", "key")


def test_m06_a_static_schedule_has_no_user() -> None:
    check_key("", "reminders/nightly")
    assert schedule_id("", "reminders/nightly") == "nightly"
    assert split_id("reminders", "nightly") == ("", "reminders/nightly")


def test_d05_an_id_of_128_characters_is_the_longest() -> None:
    check_key("ada", "k" * (LONGEST_ID - 4))
    with pytest.raises(InvalidId, match="129 characters; 128 are allowed"):
        check_key("ada", "k" * (LONGEST_ID - 3))


@pytest.mark.parametrize("text", ["", "k" * 129, "a//b", "a\x00"])
def test_d05_an_id_that_nobody_may_see_is_refused(text: str) -> None:
    with pytest.raises(InvalidId):
        check_id(text)


@given(st.tuples(TEXT, TEXT).filter(lambda pair: "/" not in pair[0]))
def test_d05_joined_ids_come_apart_as_they_were(pair: tuple[str, str]) -> None:
    assert split_id("reminders", schedule_id(*pair)) == pair


@pytest.mark.parametrize("key", [None, 5, b"key"])
def test_d05_an_id_is_text(key: str) -> None:
    with pytest.raises(InvalidId, match="expected text"):
        check_key("ada", key)
