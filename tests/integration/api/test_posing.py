"""One user tries to be, or to see, another: by paths, headers, bodies, cursors and keys."""

import json

import pytest
from duetick.client import ApiError

from tests.integration.api.town import (
    EXTERNAL,
    IDEMPOTENCY,
    KEY,
    OURS,
    SCHEDULE,
    THEIRS,
    Attempt,
    Town,
)

pytestmark = pytest.mark.slow

TRICKS = [
    f"/api/schedules/{THEIRS}/{KEY}",
    f"/api/schedules/{THEIRS}%2F{KEY}",
    f"/api/schedules/{THEIRS}~2F{KEY}",
    f"/api/schedules/..%2F{THEIRS}%2F{KEY}",
    f"/api/schedules/~2E~2E~2F{THEIRS}~2F{KEY}",
    f"/api/schedules/../users/{THEIRS}/schedules/{KEY}",
    f"/api/schedules/%2e%2e/users/{THEIRS}/schedules/{KEY}",
    f"/api/schedules/{KEY}?user={THEIRS}",
    f"/api/schedules/{KEY}?userId={THEIRS}&user_id={THEIRS}",
    f"/api/schedules/{KEY}%00",
    f"/api/schedules/{KEY};user={THEIRS}",
    f"/api//users/{THEIRS}/schedules/{KEY}",
    f"//api/users/{THEIRS}/schedules/{KEY}",
    f"/API/users/{THEIRS}/schedules/{KEY}",
    f"/api/schedules/by-external/{EXTERNAL}",
    f"/api/schedules/{KEY.upper()}",
    "/api/schedules/U%23bob%2FS%23theirs",
]
POSING: list[dict[str, str]] = [
    {"X-User-Id": THEIRS},
    {"X-Forwarded-User": THEIRS, "X-Amzn-Oidc-Identity": THEIRS},
    {"X-HTTP-Method-Override": "DELETE"},
    {"X-Original-Url": f"/api/users/{THEIRS}/schedules/{KEY}"},
    {"Cookie": f"user={THEIRS}", "Forwarded": f"for={THEIRS}"},
]


@pytest.mark.parametrize("path", TRICKS)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_no_path_leads_to_anothers(town: Town, method: str, path: str) -> None:
    status, _, body = town.send(method, path, Attempt(), town.product.stack.token_of(OURS))
    assert status in (400, 401, 404, 405), body
    assert "canary" not in body


def test_no_user_is_called_like_a_flow_and_acts_beside_its_static_schedules(town: Town) -> None:
    """The schedules that a nightly job makes are the user `flow:digests`'s."""
    town.product.operator("flow:digests").put(KEY, SCHEDULE)
    token = town.product.stack.token_of("flow:digests")
    for method, path in (("GET", "/api/schedules"), ("DELETE", f"/api/schedules/{KEY}")):
        status, _, body = town.send(method, path, Attempt(), token)
        assert (status, json.loads(body)["error"]) == (403, "forbidden")
        assert "canary" not in body


@pytest.mark.parametrize("headers", POSING)
def test_no_header_makes_one_user_another(town: Town, headers: dict[str, str]) -> None:
    token = town.product.stack.token_of(OURS)
    path = f"/api/schedules/{KEY}"
    posing, plain = (town.send("GET", path, Attempt(headers=each), token) for each in (headers, {}))
    assert posing == plain
    assert posing[0] == 404


@pytest.mark.parametrize("name", ["user", "userId", "user_id", "principal", "owner"])
def test_no_field_of_a_body_names_another_user(town: Town, name: str) -> None:
    attempt = Attempt({**SCHEDULE, name: THEIRS})
    status, _, body = town.send(
        "PUT", "/api/schedules/mine", attempt, town.product.stack.token_of(OURS)
    )
    assert status == 400
    assert name in body


def test_a_cursor_of_one_shows_the_other_nothing_but_their_own(town: Town) -> None:
    ours = town.product.client(OURS)
    for number in range(3):
        town.theirs.put(f"k{number}", SCHEDULE)
        ours.put(f"k{number}", SCHEDULE)
    page = town.theirs.call("GET", "/api/schedules?limit=1").body
    seen = ours.call("GET", f"/api/schedules?cursor={page['cursor']}").body["schedules"]
    assert isinstance(seen, list)
    assert {one["key"] for one in seen if isinstance(one, dict)} <= {"k0", "k1", "k2"}
    history = town.theirs.call("GET", f"/api/schedules/{KEY}/history?limit=1").body["cursor"]
    assert history
    with pytest.raises(ApiError, match="400 invalid_cursor"):
        ours.call("GET", f"/api/schedules/{KEY}2/history?cursor={history}")
    for number in range(3):
        town.theirs.delete(f"k{number}")


def test_an_idempotency_key_of_one_makes_the_other_a_schedule_of_their_own(town: Town) -> None:
    ours = town.product.client(OURS)
    made = ours.create(SCHEDULE | {"input": {"text": "mine"}}, idempotency_key=IDEMPOTENCY)
    assert made.body["input"] == {"text": "mine"}
    assert [one["key"] for one in ours.list()] == [made.body["key"]]


def test_an_outside_id_does_not_tell_whether_another_has_it(town: Town) -> None:
    token = town.product.stack.token_of(OURS)
    answers = [
        town.send(
            "PUT",
            "/api/schedules/mine",
            Attempt({**SCHEDULE, "externalId": name}),
            token,
            name=name,
        )
        for name in (EXTERNAL, "free-id")
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 400
