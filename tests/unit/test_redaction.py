"""J-11: what a name says to be a secret is withheld, at any depth, and nothing else is."""

import json

import pytest
from duetick.domain.redaction import WITHHELD, is_secret, redact, redact_text
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
