"""J-07, O-04 and O-05 over HTTP: operators find, retry, cancel and delete occurrences."""

import json
import logging
from collections.abc import Callable

import pytest
from duetick.cli.main import main
from duetick.client import ApiError, Fields
from duetick.core.verify import verify
from duetick.occurrences import OccurrencesClient
from duetick.operators import Operators

from tests.integration.api.asking import MINUTE
from tests.integration.local_product import NINE, Product

WRONG: Fields = {
    "cron": "0 9 * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
    "labels": {"team": "garden"},
}
WORK: Fields = {"flow": "reminders", "action": "remind", "input": {"text": "x"}}
DEAD = {"state": "dead"}
WHO = "arn:aws:iam::000000000000:user/local"


def occurrences(running: Product, why: str = "") -> OccurrencesClient:
    """Return the operators' client of the product."""
    return Operators(running.stack.server.url, token=running.stack.operator, why=why).occurrences


def dead(running: Product, *users: str) -> list[str]:
    """Let a schedule of each user die at nine, lost before it began; the ids."""
    for user in users:
        running.operator(user).put("digest", WRONG)
    running.store.index.claim_due(NINE, 100)
    running.clock.now = NINE + 2 * 60 * MINUTE
    running.store.ledger.claim_waiting(running.clock.now)
    running.clock.now += MINUTE
    return [one["id"] for one in occurrences(running).list(DEAD)]


def refusal(call: Callable[..., object], *arguments: object, **fields: object) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    with pytest.raises(ApiError) as problem:
        call(*arguments, **fields)
    return problem.value.status, problem.value.code


def test_j07_occurrences_are_found_by_what_asked_for_them(anywhere: Product) -> None:
    dead(anywhere, "ann")
    anywhere.operator("ann").enqueue({**WORK, "delay": 3_600})
    client = occurrences(anywhere)
    for origin, states in (("job", ["scheduled"]), ("schedule", ["dead"]), ("run", [])):
        found = [
            one["state"]
            for state in ("dead", "scheduled")
            for one in client.list({"state": state, "origin": origin})
        ]
        assert found == states, origin
    assert refusal(lambda: [*client.list({"origin": "job:1"})]) == (400, "invalid_schedule")


def test_j07_a_dead_one_is_found_looked_into_and_retried(anywhere: Product) -> None:
    (name,) = dead(anywhere, "ann")
    client = occurrences(anywhere, why="the partner is back")
    shown = client.get(name)
    assert (shown["user"], shown["key"], shown["flow"]) == ("ann", "digest", "reminders")
    assert (shown["state"], shown["reason"]) == ("dead", "lost")
    assert shown["schedule"] is not None
    assert shown["schedule"]["input"] == {"text": "good morning"}
    first, again = (client.retry(name) for _ in range(2))
    assert (first["changed"], again["changed"]) == (True, False)
    assert first["occurrence"]["state"] == "queued"
    anywhere.clock.now += MINUTE
    anywhere.tick()
    ended = client.get(name, of=("ann", "digest"))
    assert (ended["state"], ended["attempts"]) == ("succeeded", 1)
    assert ended["events"][-1]["note"] == f"retried by {WHO}: the partner is back"
    (line,) = anywhere.client("ann").history("digest")
    assert line["state"] == "succeeded"


def test_j11_no_user_reads_which_operator_it_was_and_nobody_a_secret(running: Product) -> None:
    (name,) = dead(running, "ann")
    occurrences(running, why="password=hunter2").retry(name)
    told = running.client("ann").explain("digest", at="2026-12-01T09:00:00Z")
    notes = [event["note"] for event in told["events"]]
    assert notes[-1] == "retried by an operator"
    shown = json.dumps(occurrences(running).get(name))
    assert WHO in shown
    assert "hunter2" not in shown


def test_o01_each_change_is_recorded_and_logged_with_who(
    running: Product, caplog: pytest.LogCaptureFixture
) -> None:
    (name,) = dead(running, "ann")
    with caplog.at_level(logging.INFO):
        occurrences(running, why="noise").delete(name)
    _, answer = running.call("GET", "/api/operations", token=running.stack.operator)
    newest = answer["operations"][0]
    assert (newest["verb"], newest["target"]) == ("delete_occurrence", name)
    assert (newest["who"], newest["why"], newest["outcome"]) == (WHO, "noise", "done")


def test_j13_what_is_deleted_is_a_bare_line_and_verify_finds_nothing(running: Product) -> None:
    (name,) = dead(running, "ann")
    client = occurrences(running)
    left = client.delete(name)["occurrence"]
    assert (left["state"], left["reason"], left["error"]) == ("deleted", "lost", None)
    assert list(client.list(DEAD)) == []
    (line,) = running.client("ann").history("digest", state="deleted")
    assert (line["labels"], line["error"]) == ({}, None)
    assert not verify(running.store, 0, running.clock.now, now=running.clock.now).found


def test_o05_what_no_index_answers_is_refused_with_the_reason(running: Product) -> None:
    client = occurrences(running)
    for filters in ({"state": "succeeded"}, {}, {"key": "digest", "state": "dead"}):
        assert refusal(lambda f=filters: list(client.list(f))) == (400, "invalid_query")
    assert refusal(client.get, "occ_000000000000") == (404, "occurrence_not_found")
    assert refusal(client.get, "occ_1", of=("ann", "digest")) == (404, "occurrence_not_found")
    status, answer = running.call(
        "GET", "/api/occurrences/occ_1?user=ann", token=running.stack.operator
    )
    assert (status, answer["error"]) == (400, "invalid_query")


@pytest.mark.parametrize(
    "filters",
    [{"state": "happy"}, {"reason": "rain"}, {"label": "team"}, {"since": "yesterday"}],
)
def test_a_filter_that_cannot_be_read_is_refused(running: Product, filters: dict[str, str]) -> None:
    asked = {"state": "dead", **filters}
    refused = refusal(lambda: list(occurrences(running).list(asked)))
    assert refused == (400, "invalid_schedule")


def test_j05_what_cannot_be_changed_is_refused_with_the_reason(running: Product) -> None:
    (name,) = dead(running, "ann")
    client = occurrences(running)
    assert refusal(client.cancel, name) == (409, "occurrence_conflict")
    running.operator("ann").delete("digest")
    assert refusal(client.retry, name) == (409, "occurrence_conflict")


def test_j07_pages_of_all_users_hold_each_once(running: Product) -> None:
    names = dead(running, *(f"user{number}" for number in range(5)))
    client = occurrences(running)
    for filters in ({}, {"reason": "lost"}, {"flow": "reminders"}):
        found = [one["id"] for one in client.list({**DEAD, **filters}, limit=2)]
        assert found == names
    assert list(client.list({**DEAD, "flow": "other"})) == []
    assert [one["user"] for one in client.list({**DEAD, "user": "user3"})] == ["user3"]


def test_o04_a_page_of_many_is_tried_first_and_then_done(running: Product) -> None:
    dead(running, "ann", "bob", "cyd")
    client = occurrences(running)
    tried = client.retry_many({"flow": "reminders"})
    assert (tried["dryRun"], tried["changed"], tried["declined"]) == (True, 3, 0)
    assert {one["user"] for one in tried["first"]} == {"ann", "bob", "cyd"}
    assert len(list(client.list(DEAD))) == 3
    first = client.retry_many({}, dry_run=False, limit=2)
    assert (first["changed"], first["cursor"] is None) == (2, False)
    rest = client.retry_many({}, dry_run=False, cursor=first["cursor"])
    assert (rest["changed"], rest["cursor"]) == (1, None)
    assert client.retry_many({}, dry_run=False)["changed"] == 0
    ended = client.cancel_many({"state": "running"}, dry_run=False)
    assert ended["changed"] == 3
    _, answer = running.call("GET", "/api/operations?limit=5", token=running.stack.operator)
    done = [(one["verb"], one["outcome"]) for one in answer["operations"]]
    assert ("retry_occurrences", "dry_run") in done
    assert ("cancel_occurrences", "done") in done
    gone = client.delete_many({"user": "ann"}, dry_run=False)
    assert gone["changed"] == 1
    assert refusal(client.retry_many, {"state": "running"}) == (400, "invalid_query")


def test_j07_a_users_token_opens_none_of_it(running: Product) -> None:
    (name,) = dead(running, "ann")
    for path in ("", f"/{name}", f"/{name}/retry"):
        method = "POST" if path.endswith("retry") else "GET"
        assert running.call(method, f"/api/occurrences{path}")[0] == 401


class Command:
    """`duetick occurrences …`, with the operator's token."""

    def __init__(self, running: Product, printed: pytest.CaptureFixture[str]) -> None:
        self._url = running.stack.server.url
        self._printed = printed

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command. Return its exit code and its output."""
        self._printed.readouterr()
        try:
            code = main(["occurrences", "--url", self._url, *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = self._printed.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def command(
    running: Product, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """The command of an operator beside the local stack."""
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    return Command(running, capsys)


def test_j07_the_command_lists_and_shows(running: Product, command: Command) -> None:
    names = dead(running, "ann", "bob")
    code, out, err = command.run("list")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split()[:3] == ["OCCURRENCE", "USER", "KEY"]
    assert [line.split()[0] for line in out.splitlines()[1:]] == names
    code, out, _ = command.run("list", "--json", "--reason", "lost", "--limit", "1")
    assert [one["id"] for one in json.loads(out)] == names[:1]
    code, out, _ = command.run("show", names[0])
    assert code == 0
    assert "good morning" in out
    assert json.loads(command.run("show", names[0], "--json")[1])["id"] == names[0]
    assert command.run("list", "--flow", "none")[1] == "None.\n"


def test_j07_the_command_changes_one_by_its_id(running: Product, command: Command) -> None:
    (name,) = dead(running, "ann")
    assert command.run("retry", name, "--why", "rain")[:2] == (0, f"{name}  retried: queued\n")
    assert command.run("retry", name)[1] == f"{name}  as it was: queued\n"
    assert command.run("cancel", name)[1] == f"{name}  cancelled: cancelled\n"
    of = ("--user", "ann", "--key", "digest")
    assert command.run("delete", name, *of)[1] == f"{name}  deleted: deleted\n"
    code, out, err = command.run("retry", name, *of)
    assert (code, out) == (1, "")
    assert "It is deleted, operator" in err
    assert "Traceback" not in err


def test_o04_the_command_tries_many_first(running: Product, command: Command) -> None:
    dead(running, "ann", "bob", "cyd")
    running.operator("cyd").delete("digest")
    code, out, err = command.run("retry", "--flow", "reminders")
    assert code == 1
    assert "2 would be retried. --yes does it." in out
    assert "cyd/digest" in err
    assert len(list(occurrences(running).list(DEAD))) == 3
    code, out, err = command.run("retry", "--all", "--yes", "--at-most", "1")
    assert (code, out) == (0, "1 retried.\n")
    cursor = err.split("--cursor ")[1].split()[0]
    code, out, err = command.run("retry", "--all", "--yes", "--cursor", cursor)
    assert "1 retried." in out
    code, out, _ = command.run("delete", "--all", "--yes", "--json")
    assert json.loads(out)["changed"] == 1
    assert command.run("delete", "--all", "--yes")[:2] == (0, "0 deleted.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["retry"], 2, "--all"),
        (["show", "occ_1", "--user", "ann"], 2, "belong together"),
        (["list", "--state", "happy"], 2, "invalid choice"),
        (["show", "occ_1"], 1, "Give"),
        (["list", "--state", "succeeded"], 1, "by user"),
        (["retry", "--state", "running"], 1, "retry is for"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(
    command: Command, arguments: list[str], code: int, says: str
) -> None:
    ended, _, err = command.run(*arguments)
    assert ended == code
    assert says.lower() in err.lower()
    assert "Traceback" not in err


def test_an_operator_is_asked_for(
    running: Product, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUETICK_OPERATOR")
    code, _, err = command.run("list")
    assert code == 1
    assert "DUETICK_OPERATOR" in err
