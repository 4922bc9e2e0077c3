"""J-11: what a name says to be a secret is withheld, at any depth, and nothing else is."""

import json
import time
from collections.abc import Callable

import pytest
from duetick.domain.redaction import (
    WITHHELD,
    is_secret,
    redact,
    redact_text,
    secrets_in,
    without,
)
from duetick.domain.schedule import Json
from hypothesis import given
from hypothesis import strategies as st

SECRET = [
    "password", "userPassword", "PASSWORD", "token", "access_token", "clientSecret",
    "Authorization", "Set-Cookie", "apiKey", "api_key", "api-key", "private_key", "privateKey",
    "key", "Key", "KEY", "API_KEY", "sshKey2",
]  # fmt: skip
PLAIN = ["monkey", "keyboard", "keynote", "donkeys", "text", "turkey", "name"]

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
    for quote in quotes:
        quoted = quote(quoted)
    inner = quoted[quoted.index("<") + 1 : quoted.rindex(">")]
    shown = without(f"no way to {quoted}", secrets_in({"to": [{"token": {"is": secret}}]}))
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
    assert without(text, secrets_in({"token": secret})) == shown


def test_j11_what_takes_too_long_to_look_through_is_not_shown() -> None:
    secrets = secrets_in({"token": [f"secret{number}" for number in range(3_000)]})
    started = time.thread_time()
    assert without("x" * 60_000, secrets) == WITHHELD
    assert without("\\" * 60_000, secrets_in({"token": "\\" * 30_000 + '"'})) == "\\" * 60_000
    assert time.thread_time() - started < 5
