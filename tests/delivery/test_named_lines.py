"""T-01: each failure around an occurrence has a line that names its user and schedule; a terminal
too.
"""

import logging
from collections.abc import Callable
from typing import NoReturn

import pytest
from duetick.cli.plain_log import PlainFormatter
from duetick.core.dispatch import Request, about_call, resolving
from duetick.core.log_lines import log_dead
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.errors import ConfigurationError, StoreUnavailable
from duetick.domain.schedule import Occurrence

from tests.delivery.scene import AT_LEAST_ONCE, NINE, Scene, fails
from tests.delivery.test_log_lines import Refusing, late, line, named


def raises(*_: object, **__: object) -> NoReturn:
    """Raise StoreUnavailable for any question."""
    raise StoreUnavailable("not now")


class Broken(Refusing):
    """A transport that raises."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> NoReturn:
        """Never an answer."""
        raise StoreUnavailable(f"{occurrence.key}: {timeout}")


def resolver_fails(scene: Scene, _patch: pytest.MonkeyPatch) -> None:
    """Fail in the resolver, on a tick's call."""
    scene.flow.resolver(raises)
    scene.deliver(scene.claim())


def resolver_is_late(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    """Be late in the resolver, on a tick's call."""
    scene.flow.resolver(lambda _id, _ctx: None)
    patch.setattr(resolving, "run_within", late)
    scene.deliver(scene.claim())


def dispatch_fails(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    """Fail in dispatch: the store is away at its begin."""
    claimed = scene.claim()
    patch.setattr(scene.store.ledger, "begin", raises)
    scene.deliver(claimed)


def transport_fails(scene: Scene, _patch: pytest.MonkeyPatch) -> None:
    """Fail in the transport of a tick."""
    run_tick(scene.store, Broken(), now=NINE)


def hook_fails(scene: Scene, _patch: pytest.MonkeyPatch) -> None:
    """Fail in the observer of a tick."""
    run_tick(scene.store, scene.inline, now=NINE, on_dispatch=raises)


def release_fails(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    """Run a tick whose endpoint is down, and whose release the store does not take."""
    patch.setattr(scene.store.ledger, "release", raises)
    run_tick(scene.store, Refusing(), now=NINE)


def enqueue_fails(scene: Scene, _patch: pytest.MonkeyPatch) -> None:
    """Fail as an outside caller asks for a background action."""
    scene.flow.action("slow", background=True)(lambda _input, _ctx: None)
    scene.put(cron="0 9 * * *", action="slow")
    scene.throttled = True
    scene.post()


WAYS: dict[str, Callable[[Scene, pytest.MonkeyPatch], None]] = {
    "resolver_failed": resolver_fails,
    "resolver_failed, late": resolver_is_late,
    "dispatch_failed": dispatch_fails,
    "transport_failed": transport_fails,
    "hook_failed": hook_fails,
    "release_failed": release_fails,
    "enqueue_failed": enqueue_fails,
}


def occurrence_of(store: Store) -> Occurrence:
    """Return the only occurrence."""
    (held,) = store.ledger.find("ada", "digest")
    return held


@pytest.mark.parametrize("way", WAYS)
def test_t01_whatever_fails_around_an_occurrence_is_logged_with_its_names(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    scene.put(cron="0 9 * * *")
    WAYS[way](scene, monkeypatch)
    told = vars(line(caplog, way.partition(",")[0]))
    wanted = named(occurrence_of(scene.store), 0)
    assert {name: told.get(name) for name in wanted if name != "attempt"} == {
        name: value for name, value in wanted.items() if name != "attempt"
    }


KNOWN: dict[str, object] = {"user": "ada", "schedule": "ada/k", "flow": "mail"}


@pytest.mark.parametrize(
    ("path_id", "body", "told"),
    [
        (None, "", {"flow": "mail"}),
        ("a//b", "", {"flow": "mail"}),
        ("~FF", "", {"flow": "mail"}),
        ("ada~2Fk", "[", KNOWN | {"occurrence": ""}),
        ("ada~2Fk", '{"occurrence": 5}', KNOWN | {"occurrence": ""}),
        ("ada~2Fk", '{"occurrence": "o-1"}', KNOWN | {"occurrence": "o-1"}),
    ],
)
def test_a_call_is_named_as_far_as_it_can_be_read(
    path_id: str | None, body: str, told: dict[str, object]
) -> None:
    assert about_call(Request("mail", path_id, {}, body, "r-1")) == told


def printed(record: logging.LogRecord) -> str:
    """Return the line as `make run` prints it, behind the time; without a stack."""
    shown = PlainFormatter().format(record).partition("\n")[0]
    return shown.partition(" ")[2]


def test_a_printed_line_names_schedule_flow_occurrence_and_attempt(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.put(cron="0 9 * * *")
    scene.act = fails
    run_tick(scene.store, scene.inline, now=NINE)
    names = f"schedule=ada/digest flow=mail occurrence={occurrence_of(scene.store).id} attempt=1"
    failed, delivery = line(caplog, "action_failed"), line(caplog, "delivery_failed")
    assert printed(failed) == f"error   action failed: RuntimeError: no mail server  {names}"
    assert printed(delivery) == f"warning delivery failed: 500  {names} why=action_failed"


def test_a_printed_death_names_its_attempt_and_says_no_more_than_is_true(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    def misconfigured(_input: object, _ctx: object) -> NoReturn:
        raise ConfigurationError("no mail server is named")

    scene.put(cron="0 9 * * *", policies=AT_LEAST_ONCE)
    scene.act = misconfigured
    run_tick(scene.store, scene.inline, now=NINE)
    held = occurrence_of(scene.store)
    log_dead(held)
    assert printed(line(caplog, "dead")) == (
        "error   dead: It failed, and is not tried again; its history has the error.  "
        f"schedule=ada/digest flow=mail occurrence={held.id} attempt=1"
    )
