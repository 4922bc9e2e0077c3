"""D-05: the characters of an id, and its way through a path."""

from fnmatch import fnmatchcase
from urllib.parse import quote

import pytest
from duetick.domain.identity import (
    LONGEST_ID,
    InvalidId,
    check_external,
    check_id,
    check_key,
    check_user,
    from_path,
    from_signed_path,
    schedule_id,
    split_id,
    to_path,
    why_not_carried,
)
from hypothesis import given
from hypothesis import strategies as st

HOSTILE = ["100%", "a%2Fb", "日本", "c\\d", "auth0|Abc", "k?#&= +", "~41", "%7E41", "a~2Fb", "..."]
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40)
IN_PATH = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


@pytest.mark.parametrize("name", HOSTILE)
def test_d05_a_hostile_user_and_key_are_allowed(name: str) -> None:
    check_key(name, name)


def test_d05_a_user_who_may_have_a_schedule_may_be_asked_about() -> None:
    longest = "u" * (LONGEST_ID - len("/k"))
    check_key(longest, "k")
    check_user(longest)
    with pytest.raises(InvalidId, match="user and key are 129 characters"):
        check_user(f"{longest}u")


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


@pytest.mark.parametrize(
    "name", ["\u3164", "\uffa0", "\u2800", "\u034f", "\ufe0f", "a/\u1160 \u115f"]
)
def test_d05_a_part_that_nobody_can_see_is_refused(name: str) -> None:
    with pytest.raises(InvalidId, match="is blank"):
        check_key("ada", name)
    with pytest.raises(InvalidId, match="is blank"):
        check_external(name.rpartition("/")[2])
    check_key("ada", f"{name}!")


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


@pytest.mark.parametrize(
    ("flow", "user_id", "key"),
    [
        ("mail", "a/b", "c"),
        ("mail", "", "nightly"),
        ("mail", "", "other/nightly"),
        ("mail", "", "mail/a/b"),
        ("", "", "mail/nightly"),
        ("no flow", "ada", "digest"),
        ("mail/../x", "ada", "digest"),
        *(("mail", "ada", key) for key in ("", "..", "a//b", " ", "tab\there", "k" * 125)),
    ],
)
def test_d05_a_row_whose_name_no_path_carries_is_refused(flow: str, user_id: str, key: str) -> None:
    assert why_not_carried(flow, user_id, key)


@pytest.mark.parametrize("name", HOSTILE)
def test_d05_a_hostile_name_is_carried(name: str) -> None:
    rows = [("mail", name, name), ("", "ada", f"a/{name}"), ("m", "", f"m/{name}")]
    for flow, user_id, key in rows:
        assert why_not_carried(flow, user_id, key) is None
        carried = from_path(to_path(schedule_id(user_id, key)))
        assert split_id(flow, carried) == (user_id, key)


@given(st.tuples(TEXT, TEXT).filter(lambda pair: "/" not in pair[0]))
def test_d05_joined_ids_come_apart_as_they_were(pair: tuple[str, str]) -> None:
    assert split_id("reminders", schedule_id(*pair)) == pair


@pytest.mark.parametrize("key", [None, 5, b"key"])
def test_d05_an_id_is_text(key: str) -> None:
    with pytest.raises(InvalidId, match="expected text"):
        check_key("ada", key)


@pytest.mark.parametrize("path", ["~62ob", "%62ob", "%7E62ob", "bo~62", "a~2Fk%30", "~2Dx", "~5Fx"])
def test_d05_what_needs_no_escape_has_none(path: str) -> None:
    with pytest.raises(InvalidId, match="needs no escape"):
        from_path(path)


@pytest.mark.parametrize("byte", range(0x21, 0x7F))
def test_d05_of_plain_characters_none_has_two_paths_without_an_escape_of_its_own(byte: int) -> None:
    """A character that travels as it is has no other path."""
    plain = chr(byte)
    for path in (f"~{byte:02X}", f"%{byte:02X}", f"%{byte:02x}"):
        if to_path(plain) == plain:
            with pytest.raises(InvalidId):
                from_path(path)
        else:
            assert from_path(path) == plain


def spellings(name: str) -> st.SearchStrategy[str]:
    """Return paths that spell each character of a name in another way."""
    ways = [
        st.sampled_from(
            [
                each,
                *(
                    mark.join(["", *codes])
                    for mark in ("~", "%", "%7E", "%7e")
                    for codes in (
                        [f"{byte:02X}" for byte in each.encode()],
                        [f"{byte:02x}" for byte in each.encode()],
                    )
                ),
            ]
        )
        for each in name
    ]
    return st.tuples(*ways).map("".join)


NAMES = ["bob", "ann@x.org", "auth0|Abc", "a b", "100%", "a~b", "~41", "日本", "k?#&=+", "d:1"]


@given(st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), spellings(name))))
def test_d05_a_deny_with_a_wildcard_for_each_mark_is_passed_by_in_no_spelling(
    pair: tuple[str, str],
) -> None:
    name, path = pair
    denied = to_path(name).replace("~", "?")
    try:
        found = from_signed_path(path)
    except InvalidId:
        return
    assert found != name or fnmatchcase(path, denied)


@given(TEXT)
def test_d05_a_signed_path_may_be_percent_encoded(name: str) -> None:
    assert from_signed_path(to_path(name)) == name
    if "~" not in name:
        assert from_signed_path(to_path(name).replace("~", "%")) == name
        assert from_signed_path(quote(name, safe="")) == name


def test_d05_a_slash_of_a_signed_path_may_be_as_it_is() -> None:
    paths = ("ann/a/b", "ann~2Fa~2Fb", "ann%2Fa%2Fb", "ann/a~2Fb")
    assert {from_signed_path(path) for path in paths} == {"ann/a/b"}


@pytest.mark.parametrize(
    "path", ["ann@x.org", "ann%7E40x.org", "ann%7e40x.org", "a|b", "a%7cb", "a:b", "a%3ab", "a~b"]
)
def test_d05_a_signed_path_in_another_spelling_is_refused_with_the_right_one(path: str) -> None:
    right = to_path(from_path(path))
    with pytest.raises(InvalidId, match=f"write {right}") as problem:
        from_signed_path(path)
    assert problem.value.flaws[0].path == ("id",)
    assert from_signed_path(right) == from_path(path)
