"""J-11: a value under a secret name is withheld, at any depth, and nothing else is."""

import html
import json
import re
import reprlib
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from duetick.domain.redaction import (
    CUT,
    LONGEST_TEXT,
    MOST_KNOWN,
    WITHHELD,
    Secrets,
    is_redacted,
    redact,
    redact_text,
)
from duetick.domain.redaction.names import is_secret
from duetick.domain.schedule import Json
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

SECRET = [
    "password", "userPassword", "PASSWORD", "token", "access_token", "clientSecret",
    "Authorization", "Set-Cookie", "apiKey", "api_key", "api-key", "private_key", "privateKey",
    "key", "Key", "KEY", "API_KEY", "sshKey2", "keys", "apikey", "accesskey", "apiKeys",
    "APIKEY", "SSHkey", "KEYid", "myKEYs", "k.e.y", "K_E_Y", "p.w.d", "pass_word",
    "pwd", "dbPwd", "passphrase", "bearer", "jwt", "X-Amz-Signature",
]  # fmt: skip
PLAIN = [
    "monkey", "MONKEY", "keyboard", "KEYBOARD", "keynote", "keyword", "donkeys", "text", "turkey",
    "hotkey", "MONKEYs", "Turkeys", "name", "path",
]  # fmt: skip

nested = st.recursive(
    st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(PLAIN), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("name", SECRET)
def test_j11_a_secrets_name_is_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", PLAIN)
def test_j11_key_counts_only_as_a_word(name: str) -> None:
    assert not is_secret(name)


@given(around=nested, name=st.sampled_from(SECRET))
def test_j11_a_canary_is_found_at_no_depth(around: Json, name: str) -> None:
    planted: Json = [{"a": [{name: {"deep": "canary"}}, around]}]
    shown = redact(planted)
    assert "canary" not in json.dumps(shown)
    assert redact(around) == around


@pytest.mark.parametrize(
    "text",
    [
        "401 for password=canary",
        "Authorization: Bearer canary",
        "{'api_key': 'canary', 'x': 1}",
        '{"token": "canary"}',
        "SECRET=canary; next",
    ],
)
def test_j11_an_errors_text_does_not_tell_it(text: str) -> None:
    shown = redact_text(text) or ""
    assert "canary" not in shown
    assert WITHHELD in shown


def test_j11_other_texts_stay_as_they_are() -> None:
    assert redact_text("no mail server at key street") == "no mail server at key street"
    assert redact_text(None) is None


Quote = Callable[[str], str]
QUOTES: list[Quote] = [repr, ascii, json.dumps, lambda text: json.dumps(text, ensure_ascii=False)]
awkward = st.text(st.sampled_from("\\\\'\"\n\t\0ä\u200b\U0001f600ab |"), min_size=4, max_size=12)


@given(secret=awkward | st.text(min_size=4), quotes=st.lists(st.sampled_from(QUOTES), max_size=3))
def test_j11_a_secret_is_found_however_often_it_was_quoted(
    secret: str, quotes: list[Quote]
) -> None:
    quoted = f"<{secret}>"
    for quote_again in quotes:
        quoted = quote_again(quoted)
    inner = quoted[quoted.index("<") + 1 : quoted.rindex(">")]
    shown = Secrets.of({"to": [{"token": {"is": secret}}]}).without(f"no way to {quoted}")
    assert WITHHELD in shown
    assert inner not in shown.replace(WITHHELD, "")


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        (7, "7 of 17, or 7.", f"{WITHHELD} of 17, or {WITHHELD}."),
        ("abc", "abc abcd\\nabc", f"{WITHHELD} abcd\\n{WITHHELD}"),
        (None, "None", "None"),
        (True, "True", "True"),
        ("", "nothing", "nothing"),
    ],
)
def test_j11_a_short_secret_counts_where_it_stands_alone(
    secret: Json, text: str, shown: str
) -> None:
    assert Secrets.of({"token": secret}).without(text) == shown


def test_j11_a_secret_is_found_behind_a_backslash_that_is_not_its_own() -> None:
    assert Secrets.of({"token": "nightjar"}).without("C:\\nightjar") == f"C:\\{WITHHELD}"


@pytest.mark.parametrize("form", ["p%40ss%20w%C3%B6rd", "p%40ss%20wörd"])
def test_j11_a_secret_is_found_in_an_address(form: str) -> None:
    shown = Secrets.of({"pwd": "p@ss wörd"}).without(f"no way to https://ann:{form}@h/x")
    assert shown == f"no way to https://ann:{WITHHELD}@h/x"


CODINGS: list[Quote] = [
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: quote(quote(text, safe=""), safe=""),
    html.escape,
    lambda text: html.escape(html.escape(text)),
    lambda text: repr(text.encode()),
    shlex.quote,
    lambda text: text.replace("'", "''"),
    str.strip,
]
long_secrets = st.builds(lambda *inner: "cana" + "ry".join(inner) + "ries", awkward, awkward)
around = st.sampled_from(["", " ", "\n", "\t "])


@given(
    secret=long_secrets,
    around=around,
    coding=st.sampled_from(CODINGS),
    quotes=st.lists(st.sampled_from(QUOTES), max_size=2),
)
def test_j11_a_secret_is_found_however_it_was_made_to_fit(
    secret: str, around: str, coding: Quote, quotes: list[Quote]
) -> None:
    """For a query, a page, a header's bytes, a shell or SQL, and then quoted."""
    told = coding(f"{around}{secret}{around}")
    for quote_again in quotes:
        told = quote_again(told)
    shown = Secrets.of({"token": f"{around}{secret}{around}"}).without(f"no way to ({told})")
    assert "cana" not in shown
    assert "ries" not in shown


@pytest.mark.parametrize("shorten", [reprlib.repr, lambda text: f"{text[:9]} [...] {text[-8:]}"])
@given(secret=st.text("abc-/&ä", min_size=60, max_size=80))
def test_j11_a_beginning_and_an_end_are_withheld_where_the_middle_is_left_out(
    secret: str, shorten: Quote
) -> None:
    shown = Secrets.of({"token": secret}).without(f"bad {shorten(secret)}!")
    assert re.fullmatch(r"bad '?\[withheld\]( \[)?\.\.\.(\] )?\[withheld\]'?!", shown)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("begins-so...", f"{WITHHELD}..."),
        ("…ends-with-it", f"…{WITHHELD}"),
        ("begins-so, ends-with-it", "begins-so, ends-with-it"),
        ("begins...-it", "begins...-it"),
    ],
)
def test_j11_a_part_of_a_secret_counts_where_it_is_long_and_the_rest_is_left_out(
    told: str, shown: str
) -> None:
    assert Secrets.of({"token": "begins-so-and-ends-with-it"}).without(told) == shown


def test_j11_what_pydantic_shortens_is_in_no_error() -> None:
    class Login(BaseModel):
        session: str = Field(max_length=10)

    secret = f"canary-{'0123456789-' * 5}dotterel"
    with pytest.raises(ValidationError, match="canary") as problem:
        Login.model_validate({"session": secret})
    shown = Secrets.of({"token": secret}).without(str(problem.value))
    assert "canary" not in shown
    assert "dotterel" not in shown


def test_j11_a_secret_that_is_a_name_hides_no_other() -> None:
    shown = Secrets.of({"token": "password"}).without("password=canary")
    assert shown == f"{WITHHELD}={WITHHELD}"


@pytest.mark.parametrize(
    "inner",
    [
        '{"password": "canary"}',
        '{"a": "{\\"password\\": \\"canary\\"}"}',
        "x?password=canary&y",
        '{"password": "canary", "password": "dotterel"}',
    ],
)
def test_j11_a_secret_of_a_text_in_the_input_is_found_where_an_error_quotes_it(inner: str) -> None:
    assert Secrets.of({"body": inner}).without("canary is wrong") == f"{WITHHELD} is wrong"


def test_j11_a_secret_that_is_json_is_made_of_secrets() -> None:
    secrets = Secrets.of({"credentials": '{"a": ["canary"], "n": 123456}'})
    assert secrets.without("canary of 123456") == f"{WITHHELD} of {WITHHELD}"


def test_j11_only_as_much_of_a_text_as_is_looked_at_is_shown() -> None:
    long = "x" * (LONGEST_TEXT - 3)
    assert redact_text(f"{long} password=canary") == f"{long} pa{CUT}"
    assert Secrets.of({"token": "dotterel"}).without(f"{long}dotterel") == f"{long}{WITHHELD}{CUT}"
    spelt = Secrets.of({"token": "dotterelä"}).without(f"{long[8:]}{ascii('dotterelä')[1:-1]}")
    assert spelt == f"{long[8:]}{WITHHELD}{CUT}"


def test_j11_where_too_much_would_be_looked_for_nothing_is_shown() -> None:
    assert Secrets.of({"token": "x" * (MOST_KNOWN + 1)}).without("short") == WITHHELD


@pytest.mark.parametrize(
    "value",
    [
        ["Authorization", "canary", "Host", "h"],
        ["Host", "h", "Authorization", "canary"],
        [{"Name": "/prod/db/password", "Value": "canary"}],
        {"form": [{"name": "user[password]", "value": "canary"}]},
        {"id": "password", "value": "canary"},
        {"field": "password", "val": ["canary"]},
        {"label": "API key", "data": {"is": "canary"}},
        {"name": "password", "default": "canary"},
        {"header": "Cookie", "content": "canary"},
    ],
)
def test_j11_a_canary_is_found_beside_its_name(value: Json) -> None:
    assert "canary" not in json.dumps(redact(value))
    assert WITHHELD in json.dumps(redact(value))
    assert Secrets.of(value).without("canary, no") == f"{WITHHELD}, no"


@pytest.mark.parametrize(
    "value",
    [
        ["id", "token", "email"],
        {"columns": ["id", "password", "email", "phone"]},
        {"id": "a token for the laundry", "value": "shown"},
        {"id": 7, "data": "shown", "default": "shown", "name": "x" * 1_000},
    ],
)
def test_j11_what_only_looks_like_a_pair_is_shown(value: Json) -> None:
    assert redact(value) == value


def test_what_operators_are_shown_is_known_by_its_mark() -> None:
    shown: list[Json] = ["x?token=canary", {"x?token=canary": 1}, [{"a": ["password: canary"]}]]
    for value in shown:
        assert not is_redacted(value)
        assert is_redacted(redact(value))
