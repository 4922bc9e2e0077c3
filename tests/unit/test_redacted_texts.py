"""J-11: a planted canary survives in no text, harmless texts stay, and the work is linear."""

import json
import pprint
import traceback
from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest
from duetick.domain.redaction import WITHHELD, redact, redact_text
from duetick.domain.schedule import Json
from hypothesis import given
from hypothesis import strategies as st

CANARY = "canary"
NAMES = [
    "password", "userPwd", "access_token", "clientSecret", "Authorization", "Set-Cookie", "apikey",
    "accesskey", "apiKeys", "keys", "key", "passphrase", "bearer", "jwt", "signature",
]  # fmt: skip
LABELS = ["name", "value", "--token", "://", "a1", "</token", "\\u0022"]
LABELLED = [
    ("name", "value"), ("key", "value"), ("ParameterKey", "ParameterValue"), ("Name", "Value"),
    ("field", "val"), ("label", "data"), ("id", "default"), ("header", "content"),
]  # fmt: skip
PLACED = ["{}", "/prod/db/{}", "user[{}]", "{}[]"]
HEADERS = ["Authorization", "Set-Cookie", "X-Api-Key"]
HARMLESS = ["monkey", "keyboard", "name", "to", "path", "hotkey", "passenger"]

awkward = st.text(st.sampled_from("\\'\"`\n\tä\U0001f600ab ,;&}])({[:=%|"), max_size=8)
canaries = st.builds(lambda *around: CANARY.join(around), awkward, awkward)
values = canaries | st.lists(canaries, min_size=1, max_size=3) | canaries.map(lambda v: {"is": v})
plain = st.text(st.sampled_from("abz 01,;&()[]{}'\"\\\n.-/?%"), max_size=12) | st.integers()
around = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(HARMLESS), inner, max_size=3)
    ),
    max_leaves=6,
)

Write = Callable[[Json], str]


def raised(value: Json) -> str:
    """Return the traceback of an error that quotes it."""
    try:
        raise ValueError(f"cannot use {value!r}")
    except ValueError as problem:
        return "".join(traceback.format_exception(problem))


WRITERS: list[Write] = [
    repr,
    ascii,
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False, indent=2),
    lambda value: json.dumps(value, separators=(",", ":")),
    raised,
]
writers = st.builds(
    lambda first, more: [first, *more],
    st.sampled_from([*WRITERS, lambda value: pprint.pformat(value, width=20)]),
    st.lists(st.sampled_from(WRITERS), max_size=2),
)


@given(name=st.sampled_from(NAMES), value=values, beside=around, writers=writers)
def test_j11_a_canary_survives_in_no_text_however_it_is_written(
    name: str, value: Json, beside: Json, writers: list[Write]
) -> None:
    text: Json = [beside, {"a": beside, name: value, "z": beside}]
    for write in writers:
        text = write(text)
    assert CANARY not in str(redact_text(str(text)))
    assert CANARY not in json.dumps(redact({"body": text, str(text): 1}))


@given(
    labels=st.sampled_from(LABELLED),
    name=st.sampled_from(NAMES),
    place=st.sampled_from(PLACED),
    parts=st.tuples(values, around),
    writers=writers,
)
def test_j11_a_canary_survives_beside_its_name(
    labels: tuple[str, str], name: str, place: str, parts: tuple[Json, Json], writers: list[Write]
) -> None:
    value, beside = parts
    label, behind = labels
    before: Json = {label: place.format(name), "is": beside, behind: value}
    after: Json = {behind: value, "is": beside, label: place.format(name)}
    pairs: Json = [[name, value], {"of": [[place.format(name), value], beside]}]
    text: Json = [before, after, pairs, ["a", f"--{name}", CANARY]]
    assert CANARY not in json.dumps(redact(text))
    assert CANARY not in str(redact_text(repr([(name, value)])))
    for write in writers:
        text = write(text)
    assert CANARY not in str(redact_text(str(text)))


@given(
    name=st.sampled_from(HEADERS),
    value=canaries,
    others=st.lists(st.sampled_from([("Host", "h"), ("Accept", "a, b"), ("X-Id", "7")])),
    place=st.integers(0, 3),
    writers=writers,
)
def test_j11_a_canary_survives_in_no_list_of_headers(
    name: str, value: str, others: list[tuple[str, str]], place: int, writers: list[Write]
) -> None:
    pairs = [*others[:place], (name, value), *others[place:]]
    text: Json = {"headers": [each for pair in pairs for each in pair]}
    assert CANARY not in json.dumps(redact(text))
    for write in writers:
        text = write(text)
    assert CANARY not in str(redact_text(str(text)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "written",
    [
        "{}:\n  canary",
        "a: b\n{}:\n- a\n- canary\nc: d",
        "  {}: |\n    a\n\n    canary\n  c: d",
        "- {}: >-2\n    canary",
        "{}[]=canary",
        "a={}&{}[0]=canary",
        "user[{}][]=canary",
        "{}%5B0%5D=canary",
        "{}['a']=canary",
        "user%5B{}%5D%5B%5D=canary",
        'form-data; name="{}"\r\n\r\ncanary\r\n--b\r\nContent',
        'form-data; name="user[{}]"\r\n\r\na\r\ncanary\r\n--b--',
        "Key (id, {})=(7, canary) already exists.",
    ],
)
@given(
    name=st.sampled_from(["password", "api_key", "accessToken"]),
    writers=st.lists(st.sampled_from(WRITERS), max_size=2),
)
def test_j11_a_canary_survives_in_no_form_and_no_block(
    written: str, name: str, writers: list[Write]
) -> None:
    text: Json = written.replace("{}", name)
    for write in writers:
        text = write(text)
    assert CANARY not in str(redact_text(str(text)))
    assert CANARY not in json.dumps(redact({"body": text}))


@given(name=st.sampled_from(NAMES), value=canaries, spelt=st.sets(st.integers(0, 15)))
def test_j11_a_canary_survives_behind_no_name_with_spelt_letters(
    name: str, value: str, spelt: set[int]
) -> None:
    letters = "".join(f"\\u{ord(c):04x}" if at in spelt else c for at, c in enumerate(name))
    text = f'{{"{letters}": {json.dumps(value)}}}'
    for shown in (text, json.dumps(text), repr(json.dumps(text))):
        assert CANARY not in str(redact_text(shown))
        assert CANARY not in json.dumps(redact({"raw": shown}))


@given(
    name=st.sampled_from(NAMES),
    value=canaries,
    writers=st.lists(st.sampled_from(WRITERS), max_size=3),
)
def test_j11_a_canary_survives_in_no_query(name: str, value: str, writers: list[Write]) -> None:
    query = urlencode({"a": "b", name: value, "c": "d"})
    text = f"GET https://h/x?{query} https://h/x?next={quote(query)}"
    for write in writers:
        text = write(text)
    shown = str(redact_text(text))
    assert CANARY not in shown
    assert "https://h/x?a=b&" in shown


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["Bearer", "Basic", "Digest C", 'Digest username="C", b="C",'])
@pytest.mark.parametrize("name", ["Authorization", "Proxy-Authorization", "Cookie", "X-Auth-Token"])
@given(writers=st.lists(st.sampled_from(WRITERS), max_size=3))
def test_j11_a_canary_survives_in_no_header(name: str, scheme: str, writers: list[Write]) -> None:
    text = f"GET /\n{name}: {scheme} {CANARY}"
    for write in writers:
        text = write(text)
    assert CANARY not in str(redact_text(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET /?token=canary&a=b now", f"GET /?token={WITHHELD}&a=b now"),
        ("{'password': ['A', 'B'], 'x': 1}", f"{{'password': {WITHHELD}, 'x': 1}}"),
        ('{"pwd": "a\\"b", "x": 1}', f'{{"pwd": "{WITHHELD}", "x": 1}}'),
        ("Authorization: Digest C x\nHost: h", f"Authorization: {WITHHELD}\nHost: h"),
        ("'Authorization: Digest C x' is bad", f"'Authorization: {WITHHELD}' is bad"),
        ("Login(password=Secret('a b'), n=1)", f"Login(password={WITHHELD}, n=1)"),
        ("{'url': 'h?token=canary'}", f"{{'url': 'h?token={WITHHELD}'}}"),
        ("user[password]=canary&x=1", f"user[password]={WITHHELD}&x=1"),
        ("Invalid API key: canary", f"Invalid API key: {WITHHELD}"),
        ('{"pwd":\n  "a"}', f'{{"pwd":\n  "{WITHHELD}"}}'),
        (r'"{\"pwd\":\n  \"a\"}"', rf'"{{\"pwd\":\n  \"{WITHHELD}\"}}"'),
        ("bad password: token: canary", f"bad password: {WITHHELD}"),
        ("https://ann:canary@h/x?to=a@b", f"https://ann:{WITHHELD}@h/x?to=a@b"),
        ("postgres://ann:ca/nary@h/db", f"postgres://ann:{WITHHELD}@h/db"),
        (r"https:\/\/ann:canary@h", rf"https:\/\/ann:{WITHHELD}@h"),
        ("https%3A%2F%2Fann%3Acanary%40h", f"https%3A%2F%2Fann%3A{WITHHELD}%40h"),
        ("no: Bearer ey.c4nary-x, no", f"no: Bearer {WITHHELD}, no"),
        ("'Basic Y2FuYXJ5OmNhbmFyeQ=='", f"'Basic {WITHHELD}'"),
        ('password="""a "canary" b"""', f'password="{WITHHELD}"'),
        ("<a:Password>canary</a:Password>", f"<a:Password>{WITHHELD}</a:Password>"),
        ("<pwd><v>canary</v></pwd><a/>", f"<pwd>{WITHHELD}</pwd><a/>"),
        ("db --password canary --api-key c x", f"db --password {WITHHELD} --api-key {WITHHELD} x"),
        ("['db', '--password', 'canary', 'x']", f"['db', '--password', '{WITHHELD}', 'x']"),
        ("[('Cookie', 'canary'), ('a', 'b')]", f"[('Cookie', '{WITHHELD}'), ('a', 'b')]"),
        ("Header(name='Cookie', value='C')", f"Header(name='Cookie', value='{WITHHELD}')"),
        ("- name: DB_PASSWORD\n  value: C\n", f"- name: DB_PASSWORD\n  value: {WITHHELD}\n"),
        ("user[tokens][]=C&a[0]=b", f"user[tokens][]={WITHHELD}&a[0]=b"),
        ("token%5B0%5D=C&a=b", f"token%5B0%5D={WITHHELD}&a=b"),
        ("Key (id, pwd)=(7, C) already exists.", f"Key (id, pwd)={WITHHELD} already exists."),
        ("a: b\npwd:\n  - C\n  - D\nc: d", f"a: b\npwd:\n  {WITHHELD}\nc: d"),
        ("- pwd: |\n    C\n\n    D\n- c: d", f"- pwd: {WITHHELD}\n- c: d"),
        ('name="pwd"\r\n\r\nC\r\nD\r\n--b', f'name="pwd"\r\n\r\n{WITHHELD}\r\n--b'),
        ("['Host', 'h', 'Cookie', 'C', 'a']", f"['Host', 'h', 'Cookie', '{WITHHELD}', 'a']"),
        ("{'id': 'user[pwd]', 'val': 'C'}", f"{{'id': 'user[pwd]', 'val': '{WITHHELD}'}}"),
        (r"[('pwd', 'C\\'), ('token', 'D')]", f"[('pwd', '{WITHHELD}"),
        ("Name: /prod/pwd\nValue: C\n", f"Name: /prod/pwd\nValue: {WITHHELD}\n"),
        (r'{"pass\u0077ord": "C"}', rf'{{"pass\u0077ord": "{WITHHELD}"}}'),
        (r"{\u0022pwd\u0022:\u0022C\u0022}", rf"{{\u0022pwd\u0022:\u0022{WITHHELD}\u0022}}"),
        (f"token={WITHHELD} 'pwd': '{WITHHELD}'", f"token={WITHHELD} 'pwd': '{WITHHELD}'"),
    ],
)
def test_j11_what_stands_around_a_secret_is_shown(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'user'",
        "jwt.TokenError: Signature has expired",
        "Key (user_id, key)=(ann, nightly) already exists.",
        "names: ['id', 'token', 'email'], {'header': 'Cookie', 'x': 'y'}",
        "Enter your token:\n  as it was sent",
        "    if token:\n        go(on)",
        'name="to"\r\n\r\nann\r\n--b',
        "tokens[3]: read behind the last, tokens[n] is not there",
        "key: must not be empty.",
        "Enter your password:\nthen go on",
        "a monkey = keyboard: turkey",
        "    for key in sorted(keys, reverse=True):",
        "a bearer of news, and the Bearer token of 2026",
        "Basic authentication with JavaScript, basic IPv4 and ISO-8601",
        'WWW-Authenticate: Bearer realm="example"',
        "use --password to log in; the --token option is missing",
        "usage: db [--password PASSWORD] [--token TOKEN]",
        "    headers.get('token', None)",
        "login <user> <password> [<token>]",
        "https://h:80/x?to=a@b and git@h:x.git, ssh://git@h/x",
        "{'name': 'Ann', 'value': 3}, {'value': 4, 'name': 'a token for the laundry'}",
    ],
)
def test_j11_prose_stays_as_it_is(text: str) -> None:
    assert redact_text(text) == text


def test_j11_the_names_of_an_action_are_words_too() -> None:
    text = "text: cannot send {'text': 'canary'} for text=canary"
    shown = f"text: cannot send {{'text': '{WITHHELD}'}} for text={WITHHELD}"
    assert redact_text(text, ["text"]) == shown


@given(value=around, writers=writers)
def test_j11_a_harmless_text_stays_as_it_is(value: Json, writers: list[Write]) -> None:
    text = value
    for write in writers:
        text = write(text)
    assert redact_text(str(text)) == str(text)
    assert redact([value, text]) == [value, text]


@given(parts=st.lists(st.sampled_from([*"\\'\"[](){}:=,; \nab<>/@-", *NAMES, *LABELS])))
def test_j11_withholding_twice_is_withholding_once(parts: list[str]) -> None:
    once = str(redact_text("".join(parts)))
    assert redact_text(once) == once
