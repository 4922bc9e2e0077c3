"""D-03's table through a deployed API in secret mode: the failures there, and in the background."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.core.wire import delivery_json
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.domain.states import State
from duetick.stores import open_store

from tests.e2e.conftest import Deployed, configure, deploy
from tests.e2e.trial_stack import BEARER, Row, Trials
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.postgres import EmbeddedPostgres
from tests.lab.sam import Sam
from tests.lab.waiting import wait

TIMEOUT = 60

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trials(
    sam: Sam,
    emulated_aws: EmulatedAws,
    quiet: Path,
    parameters: dict[str, str],
) -> Iterator[Trials]:
    """Deploy the stack on a Postgres of its own."""
    server = EmbeddedPostgres()
    secrets = emulated_aws.client("secretsmanager")
    password = secrets.create_secret(Name="trials", SecretString=json.dumps({"password": "any"}))
    bearer = secrets.create_secret(Name="bearer", SecretString=BEARER)
    there = {
        **parameters,
        "Backend": "postgres",
        "PostgresAddress": server.tcp_url,
        "PostgresSecretArn": password["ARN"],
        "DispatchSecretArn": bearer["ARN"],
        "DispatchTimeout": str(TIMEOUT),
    }
    stack = deploy(sam, emulated_aws, quiet, "duetick-trials", there)
    store = open_store(server.tcp_url)
    yield Trials(stack, server, store)
    store.close()
    server.remove()


def code(answer: Row) -> tuple[int, str]:
    """Return the status and the code of an error. It has a message, and tells nothing else."""
    status, body = answer
    assert set(body) - {"problems"} == {"error", "message"}
    assert "hunter2" not in str(body)
    assert "Traceback" not in str(body)
    return status, body["error"]


@pytest.mark.parametrize("token", ["-", "wrong", f"{BEARER}x", BEARER[:-1]])
def test_unauthorized_is_everybody_else(trials: Trials, token: str) -> None:
    assert code(trials.post("bea/x", token=token)) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("action", "given"),
    [("raises", None), ("exits", None), ("takes", 9.0)],
)
def test_action_failed(trials: Trials, action: str, given: Json) -> None:
    key = f"fails-{action}"
    claimed = trials.claim(trials.put(key, action, given, Policies(timeout=1)))
    assert code(trials.deliver(claimed)) == (500, "action_failed")
    assert trials.became(key) == [("dead", "failed")]
    assert trials.deliver(claimed) == (200, {"status": "duplicate", "state": "dead"})


def test_invalid_schedule_where_the_input_no_longer_fits(trials: Trials) -> None:
    claimed = trials.claim(trials.put("unfit", "takes", "a while"))
    assert code(trials.deliver(claimed)) == (400, "invalid_schedule")
    assert trials.became("unfit") == [("dead", "rejected")]


def test_resolver_failed_and_one_that_finds_nothing(trials: Trials) -> None:
    assert code(trials.post("bea/x", flow="broken")) == (500, "resolver_failed")
    assert code(trials.post("bea/x", flow="empty")) == (404, "schedule_not_found")


def test_flow_not_found_ends_what_was_leased_of_it(trials: Trials) -> None:
    gone = replace(trials.put("of-a-flow-that-went"), flow="went")
    claimed = trials.claim(trials.store.schedules.put(gone))
    answer = trials.post(claimed.schedule_id, delivery_json(claimed), flow="went")
    assert code(answer) == (404, "flow_not_found")
    assert trials.became("of-a-flow-that-went") == [("dead", "rejected")]


def deleted(store: Store, schedule: Schedule) -> None:
    store.schedules.delete(schedule.user_id, schedule.key)


def disabled(store: Store, schedule: Schedule) -> None:
    store.schedules.put(replace(schedule, enabled=False))


def retimed(store: Store, schedule: Schedule) -> None:
    store.schedules.put(replace(schedule, cron="0 9 2 2 *"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [(deleted, "schedule_deleted"), (disabled, "disabled"), (retimed, "superseded")],
)
def test_skipped_after_a_late_edit(
    trials: Trials, change: Callable[[Store, Schedule], None], reason: str
) -> None:
    schedule = trials.put(f"edited-{reason}")
    claimed = trials.claim(schedule)
    change(trials.store, schedule)
    assert trials.deliver(claimed) == (200, {"status": "skipped", "reason": reason})
    assert ("cancelled", reason) in trials.became(f"edited-{reason}")


@contextmanager
def running(trials: Trials, key: str, done: Path) -> Iterator[Occurrence]:
    """Yield an occurrence whose action runs during the block, and then ends in success."""
    answers: list[Row] = []
    policies = Policies(overlap=Overlap.SKIP, timeout=TIMEOUT - 5)
    claimed = trials.claim(trials.put(key, "holds", str(done), policies))
    beside = threading.Thread(target=lambda: answers.append(trials.deliver(claimed)))
    beside.start()
    try:
        wait(lambda: trials.became(key) == [("processing", None)])
        yield claimed
    finally:
        done.touch()
        beside.join()
    assert [status for status, _ in answers] == [202]


def test_in_progress_and_overlap_while_it_runs(trials: Trials, tmp_path: Path) -> None:
    with running(trials, "busy", tmp_path / "done") as claimed:
        assert code(trials.deliver(claimed)) == (409, "in_progress")
        other = trials.post("bea/busy", {"idempotencyKey": "other"})
        assert other == (200, {"status": "skipped", "reason": "overlap"})
    assert sorted(trials.became("busy")) == [("cancelled", "overlap"), ("succeeded", "fired")]


def test_a_background_action_runs_in_an_asynchronous_invocation(
    trials: Trials, tmp_path: Path
) -> None:
    """The action runs for longer than a third of its lease, which it renews by then. It settles in
    the end.
    """
    done = tmp_path / "done"
    claimed = trials.claim(trials.put("long", "holds_long", str(done), Policies(timeout=1)))
    status, body = trials.deliver(claimed)
    assert (status, body["outcome"]) == (202, "queued")
    wait(lambda: trials.became("long") == [("processing", None)])
    first = held(trials, claimed)
    assert trials.deliver(claimed)[0] == 409
    wait(lambda: lease_of(held(trials, claimed)) > lease_of(first))
    done.touch()
    wait(lambda: trials.became("long") == [("succeeded", "fired")])
    assert held(trials, claimed).attempts == 1
    shown = trials.stack.call("GET", "/api/users/bea/schedules/long/history")[1]["history"]
    assert [(line["state"], line["attempts"]) for line in shown] == [("succeeded", 1)]


def test_a_background_action_whose_process_dies_is_lost_once(trials: Trials) -> None:
    claimed = trials.claim(trials.put("dies", "dies"))
    assert trials.deliver(claimed)[1]["outcome"] == "queued"
    wait(lambda: held(trials, claimed).attempts == 1)
    wait(lambda: tried_again(trials), pause=0.2)
    trials.store.ledger.claim_waiting(lease_of(held(trials, claimed)))
    assert (trials.became("dies"), held(trials, claimed).attempts) == ([("dead", "lost")], 1)


def tried_again(trials: Trials) -> bool:
    """Return True if Lambda has repeated an invocation that died: the answer says that one is under
    way.

    The emulator reads the late words of a process only as it is invoked again.
    """
    assert trials.post("bea/dies", token="-")[0] == 401
    lines = trials.stack.lines("Dispatch")
    answers = (json.loads(line) for line in lines if '"dispatch"' in line)
    return any(each["status"] == 409 and "path" not in each for each in answers)


def held(trials: Trials, claimed: Occurrence) -> Occurrence:
    """Return the occurrence as the ledger has it."""
    found = trials.store.ledger.get(*claimed.identity)
    assert found
    return found


def lease_of(occurrence: Occurrence) -> int:
    """Return the end of its lease; 0 without one."""
    return occurrence.lease_until or 0


def test_dispatch_failed_while_the_database_is_down(trials: Trials) -> None:
    claimed = trials.claim(trials.put("down"))
    trials.store.close()
    trials.server.stop()
    answer = trials.deliver(claimed)
    trials.server.start()
    assert code(answer) == (500, "dispatch_failed")
    assert trials.became("down") == [("queued", None)]
    assert trials.deliver(claimed)[0] == 202
    assert trials.became("down") == [(State.SUCCEEDED, "fired")]


def test_flow_unregistered_where_a_deployment_has_no_flows(trials: Trials) -> None:
    claimed = trials.claim(trials.put("unregistered"))
    with without_flows(trials.stack):
        assert code(trials.deliver(claimed)) == (503, "flow_unregistered")
    assert trials.became("unregistered") == [("queued", None)]
    assert trials.deliver(claimed)[0] == 202


@contextmanager
def without_flows(stack: Deployed) -> Iterator[None]:
    """Tell the dispatch function to look for flows where there are none."""
    functions = stack.aws.client("lambda").list_functions()["Functions"]
    (found,) = (
        each for each in functions if each["FunctionName"].startswith(f"{stack.name}-Dispatch")
    )
    before = found["Environment"]["Variables"]
    configure(stack.aws, found["FunctionName"], {**before, "DUETICK_FLOWS": "duetick.domain"})
    try:
        yield
    finally:
        configure(stack.aws, found["FunctionName"], before)
