"""ETags, and the refusals of changes if another was faster."""

import pytest
from duetick.client import ApiError, Client

from tests.integration.api.asking import HELLO, MINUTE, refused
from tests.integration.local_product import Product


def test_a_change_of_what_was_changed_meanwhile_is_refused_with_what_to_do(client: Client) -> None:
    old = client.put("hello", HELLO)
    new = client.change("hello", {"cron": "0 8 * * *"})
    for act in (
        lambda: client.put("hello", HELLO, if_match=old.etag),
        lambda: client.change("hello", {"cron": "0 7 * * *"}, if_match=old.etag),
        lambda: client.delete("hello", if_match=old.etag),
        lambda: client.pause("hello", if_match=old.etag),
        lambda: client.resume("hello", if_match=old.etag),
    ):
        with pytest.raises(ApiError, match="read it again") as problem:
            act()
        assert (problem.value.status, problem.value.code) == (412, "version_conflict")
    assert client.get("hello").etag == new.etag
    client.delete("hello", if_match=new.etag)


def test_an_etag_of_a_deleted_schedule_does_not_fit_its_successor(
    running: Product, client: Client
) -> None:
    old = client.put("hello", HELLO)
    client.delete("hello")
    new = client.put("hello", HELLO)
    assert old.etag != new.etag
    assert refused(client.delete, "hello", if_match=old.etag)[0] == 412
    running.clock.now += MINUTE
    client.delete("hello", if_match=new.etag)


@pytest.mark.parametrize("write", ["put", "delete"])
def test_an_etag_holds_for_no_successor_that_comes_between_reading_and_writing(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    old = client.put("hello", HELLO)
    kept, written = running.store.schedules, getattr(running.store.schedules, write)
    there = kept.get("you", "hello")
    assert there

    def meddled(*arguments: object, **fields: object) -> object:
        monkeypatch.setattr(kept, write, written)
        kept.delete("you", "hello")
        kept.put(there)
        return written(*arguments, **fields)

    monkeypatch.setattr(kept, write, meddled)
    act = client.pause if write == "put" else client.delete
    assert refused(act, "hello", if_match=old.etag) == (412, "version_conflict")
    found = client.get("hello").body
    assert (found["version"], found["paused"]) == (1, None)


def test_a_put_can_be_kept_from_replacing(client: Client) -> None:
    only_new = {"If-None-Match": "*"}
    path = "/api/schedules/hello"
    assert client.call("PUT", path, HELLO, only_new).status == 201
    assert refused(client.call, "PUT", path, HELLO, only_new)[0] == 412


def test_a_put_on_condition_creates_nothing(client: Client) -> None:
    assert refused(client.put, "hello", HELLO, if_match="*")[0] == 412
    assert refused(client.put, "hello", HELLO, if_match='"1-0"')[0] == 412
    assert list(client.list()) == []
