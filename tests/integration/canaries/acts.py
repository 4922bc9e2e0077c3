"""The acts of the canaries: each lets some outlets speak, also outlets that fail."""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import pytest
from duetick.api.agents.tools import TOOLS
from duetick.core import done
from duetick.core.recovery import recover
from duetick.core.static import register
from duetick.core.witness import NOTE
from duetick.domain import rows as domain_rows
from duetick.domain.errors import SchemaOutdated, StoreUnavailable, WitnessUnavailable
from duetick.domain.schedule import IndexRow, Json
from duetick.runtime import announcing, custom_resource, wiring

from tests.integration.canaries.office import broken as broken_office
from tests.integration.canaries.office import heard
from tests.integration.canaries.planted import DATABASE, FAULT, INPUT, LABELS
from tests.integration.canaries.planted import NOTE as PAUSE_NOTE
from tests.integration.canaries.stage import SCHEDULE, Office
from tests.integration.events.recorded import event
from tests.integration.local_product import set_again, tick_seldom

HOUR: Final = 60
MINE, ANYS = "/api/schedules", "/api/users/{user}/schedules"
ONE: Final = "/{key}"
AT_LEAST_ONCE: Final[Json] = {"delivery": "at_least_once", "retry": {"attempts": 2, "first": 1}}


def users_write(office: Office) -> None:
    """Call each route by which users write, with right and with wrong bodies."""
    wrong = {"cron": "x", "input": [INPUT], "labels": LABELS, "token": "canary-token"}
    for base in (MINE, ANYS):
        for body in (SCHEDULE | {"key": f"made-{len(base)}"}, wrong):
            office.ask(f"POST {base}", body)
        office.ask(f"PUT {base}{ONE}", SCHEDULE | {"policies": AT_LEAST_ONCE}, key="twice")
        office.ask(f"PUT {base}{ONE}", SCHEDULE)
        office.ask(f"PUT {base}{ONE}", wrong)
        named = SCHEDULE | {"key": f"of-{len(base)}"}
        office.ask(f"POST {base}/batch", {"schedules": [named, wrong, wrong | {"key": "w"}]})
        office.ask(f"PATCH {base}{ONE}", {"input": INPUT | {"more": "x"}, "labels": LABELS})
        office.ask(f"PATCH {base}{ONE}", {"input": None, "cron": FAULT})
        office.ask(f"POST {base}{ONE}/pause", {"note": PAUSE_NOTE})
        told(office)
        office.ask(f"POST {base}{ONE}/resume")
    each = [SCHEDULE | {"user": "ann", "key": "of-all"}, wrong | {"user": "ann", "key": "w"}]
    office.ask("POST /api/all-schedules/batch", {"schedules": each})
    tell = SCHEDULE | {"action": "tell"}
    office.ask(f"PUT {MINE}{ONE}", tell, key="told")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"action": "behind"}, key="behind")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"action": "call"}, key="call")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"action": "charge"}, key="charge")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"input": None}, key="computed")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"flow": "remote", "action": "work"}, key="remote")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"action": "work"}, key="works")
    office.ask(f"PUT {ANYS}{ONE}", SCHEDULE | {"externalId": "crm-7"}, key="outside")
    picky = SCHEDULE | {"action": "pick", "input": {"secret": "canary-input"}}
    office.ask(f"PUT {MINE}{ONE}", picky, key="picky")
    done = {"action": "work", "policies": {"maxRuns": 1, "afterCompletion": "delete"}}
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | done, key="once")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | done, key="once-more")


def told(office: Office) -> None:
    """Read everything that the product tells."""
    for base, root in ((MINE, "/api"), (ANYS, "/api/users/{user}")):
        office.ask(f"GET {root}/actions")
        office.ask(f"GET {base}")
        office.ask(f"GET {base}?state=x&token=canary-query")
        office.ask(f"GET {base}/by-external/{ONE[1:]}", key="crm-7")
        keys = "k", "twice", "told", "behind", "call", "charge", "computed", "works", "canary-none"
        for key in keys:
            for rest in ("", "/upcoming", "/history", "/explain", "/timeline"):
                office.ask(f"GET {base}{ONE}{rest}", key=key)
            office.ask(f"GET {base}{ONE}/explain?at=2026-12-01T09:00:00Z", key=key)
    office.ask("GET /api/flows")
    office.ask("POST /api/upcoming", {"cron": "0 9 * * *", "timezone": FAULT})
    office.ask("POST /api/upcoming", {"cron": "0 9 * * *", "token": "canary-token"})
    hidden = {"cron": f"0 9 * * * {FAULT}", "policies": {"spread": "canary-token"}, "key": "k"}
    for root in ("/api", "/api/users/{user}"):
        office.ask(f"POST {root}/forecast", {"most": 1, "flow": "office"})
        office.ask(f"POST {root}/forecast", {"schedule": hidden, "cursor": "canary-query"})
    office.ask("GET /api/users/{user}/export")
    for route in ("overview", "operations", "unreadable", "all-schedules", "workers", "locks"):
        office.ask(f"GET /api/{route}")
    office.ask("GET /api/flows/{flow}/schedules")
    for rest in ("", "/history", "/timeline", "/explain"):
        office.ask(f"GET /api/static-schedules/{{flow}}/{{id}}{rest}", flow="office", id="nightly")


def times_come(office: Office) -> None:
    """Let all schedules fire at nine; some are tried again."""
    register(office.running.store, wiring.flows().static(), "")
    broken_office["hook"] = True
    for _ in range(4):
        office.tick(1)
        office.run_queue()
    broken_office["hook"] = False
    office.written["failure hook"] += heard
    told(office)


def jobs_are_made(office: Office) -> None:
    """Make jobs, at once and later, right and wrong; they fail, are cancelled, and are told of."""
    work = {name: SCHEDULE[name] for name in ("flow", "action", "input", "labels")}
    keyed = work | {"policies": AT_LEAST_ONCE}
    wrong = work | {"input": [INPUT], "at": FAULT, "token": "canary-token"}
    for root in ("/api", "/api/users/{user}"):
        names: list[str] = []
        for body in (keyed, work | {"delay": 60, "action": "tell"}, wrong):
            _, told_of = office.ask(f"POST {root}/jobs", body)
            names += re.findall(r'"id": ?"(occ_[0-9a-f]{28})"', told_of)
        office.ask(f"POST {root}/jobs/batch", {"jobs": [work, wrong]})
        office.tick(1)
        office.run_queue()
        for _ in range(2):
            office.ask(f"GET {root}/jobs")
            for name in (*names, "canary-none"):
                for rest in ("", "/history", "/explain"):
                    office.ask(f"GET {root}/jobs/{{key}}{rest}", key=name)
                office.ask(f"POST {root}/jobs/{{key}}/cancel", key=name)
        assert len(names) == 2
    office.ask("GET /api/users/{user}/export")


def agents_call(office: Office) -> None:
    """Call each tool, right and wrong; send a message that is none; let a store break."""
    work = {name: SCHEDULE[name] for name in ("flow", "action", "input")}
    makes: dict[str, dict[str, object]] = {
        "create_schedule": {**SCHEDULE},
        "change_schedule": {"input": INPUT},
        "enqueue_job": {**work},
    }
    wrong = {"cron": FAULT, "token": "canary-token", "input": [INPUT], "at": FAULT, "until": FAULT}
    for name, tool in TOOLS.items():
        named = {"key": "of-agents"} if "key" in tool.takes() else {}
        for given in ({**named, **makes.get(name, {})}, {**named, **wrong}):
            known = {one: each for one, each in given.items() if one in tool.takes()}
            for arguments in (known, given):
                message(office, "tools/call", {"name": name, "arguments": arguments})
    for method in ("initialize", "tools/list", "ping", "none"):
        message(office, method, wrong)
    office.ask("POST /api/mcp", {"token": "canary-token"})
    with office.broken(office.running.store.schedules, "list", RuntimeError(FAULT)):
        message(office, "tools/call", {"name": "list_schedules"})


def message(office: Office, method: str, params: object) -> None:
    """Send a message of an agent's."""
    sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    office.ask("POST /api/mcp", sent)


def callers_dispatch(office: Office) -> None:
    """Dispatch from outside Duetick, with keys of the callers' own."""
    dispatch = "POST /api/flows/{flow}/schedules/{id}/dispatch"
    keyed = {"idempotencyKey": "canary-callers-key", "apiKey": "canary-token"}
    for key in ("k", "behind", "told", "none"):
        for body in (keyed, keyed, {"token": "canary-token", "origin": 5}):
            office.ask(dispatch, body, id=f"ann~2F{key}")
    for key in ("crm-7", "none"):
        pushed = {"apiKey": "canary-token", "note": "x"}
        office.ask("POST /api/schedules/by-external/{key}/dispatch", pushed, key=key)
    office.run_queue()
    office.throttled = True
    office.ask(dispatch, keyed | {"idempotencyKey": "2"}, id="ann~2Fbehind")
    office.throttled = False
    for base in (MINE, ANYS):
        office.ask(f"POST {base}{ONE}/run")
        office.ask(f"POST {base}{ONE}/run", key="behind")
    office.run_queue()
    told(office)


def commands_speak(office: Office) -> None:
    """Run each command so that it succeeds, and so that it fails."""
    put = ("--cron", "0 9 * * *", "--flow", "office", "--action", "fail")
    office.command("schedules", "put", "mine", *put, "--input", json.dumps(INPUT))
    office.command("schedules", "put", "mine", "--input", "{'apiKey': 'canary-action-error'}")
    for verb in ("list", "actions"):
        office.command("schedules", verb)
    office.command("schedules", "pause", "mine", "--note", PAUSE_NOTE)
    office.command("schedules", "explain", "mine")
    for verb in ("get", "resume", "run", "history", "upcoming", "explain", "delete", "get"):
        office.command("schedules", verb, "mine")
    mine = wiring.settings().store
    for verb in ("migrate", "verify", "recover"):
        for store in (mine, DATABASE):
            office.command(verb, "--store", store)
    for verb in ("check", "rebuild", "doctor", "locks", "workers", "purge"):
        for store in (mine, DATABASE):
            office.command(verb, "--store", store)
    named = ("--flow", "office", "--action", "fail", "--input", json.dumps(INPUT))
    name = json.loads(office.command("jobs", "add", *named, "--json"))["id"]
    office.command("jobs", "add", *named, "--at", FAULT)
    office.command("jobs", "list")
    office.tick(1)
    for verb in ("show", "history", "explain", "cancel"):
        for one in (name, "canary-none"):
            office.command("jobs", verb, one)
    office.command("schedules", "by-external", "crm-7")
    office.command("schedules", "dispatch", "crm-7", "--body", '{"apiKey": "canary-token"}')
    for words in (("overview",), ("operations",), ("unreadable",), ("users", "export", "ann")):
        office.command(*words)
    office.command("doctor")
    office.command("schedules", "mend", "mine", "--why", PAUSE_NOTE)
    office.command("upcoming", f"0 9 * * * {FAULT}")
    office.command("upcoming", "0 9 * * *")
    office.command("costs")
    office.command("token", "--user", "ann")
    office.command("new", "1 canary-none")
    office.command("package", "--to", "tests")
    office.command("layer", "canary-none")
    office.command("redrive", "--stack", "canary-none")


def forecasts_are_read(office: Office) -> None:
    """Read forecasts: of all, of a user, of an unreadable schedule, and by a program."""
    asked = ("--user", "ann"), ("--flow", "absent"), ("--cron", FAULT), ("--most", "1", "--json")
    for words in asked:
        office.command("forecast", *words)


def schedules_move(office: Office) -> None:
    """Move schedules from others and to them, right and wrong."""
    told = "/opt/send --password=canary-command"
    row = {"name": "q", "cron": "0 9 * * *", "data": INPUT, "options": {"tz": FAULT}}
    listed = {"Name": "n", "ScheduleExpression": f"rate(5 {FAULT})", "Target": {"Input": told}}
    texts = {
        "crontab": f"0 9 * * * {told}\n75 * * * * {told}\nPASSWORD=canary-command\n",
        "eventbridge": json.dumps(listed),
        "pgboss": json.dumps([row, {**row, "options": {}}]),
        "apscheduler": json.dumps({"id": "j", "job_state": FAULT}),
        "csv": "key,cron,input\nk,0 9 * * *,{'password': 'canary-command'\n",
        "jsonl": json.dumps(
            {"key": "moved", "cron": "0 9 * * *", "input": INPUT, "labels": LABELS}
        ),
    }
    runs = ("--flow", "office", "--action", "fail")
    for form, text in texts.items():
        file = office.folder / f"source.{form}"
        file.write_text(text)
        for more in ((), ("--yes",), ("--yes", "--remove", "--json")):
            office.command("import", form, str(file), *runs, *more)
        office.command("export", form, "--label", f"import={form}")
    office.command("import", "pgboss", "--from", DATABASE, *runs)


def limits_are_reached(office: Office) -> None:
    """Callers are refused, and told why."""
    set_again(office.patch, "QUOTA_SCHEDULES", "1")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE, key="too-many")
    set_again(office.patch, "QUOTA_SCHEDULES", "1000")
    once = {"policies": {"delivery": "effectively_once"}}
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | once, key="fixed")


def parts_break(office: Office) -> None:
    """Break each part once, with words that tell too much."""
    store, fault = office.running.store, StoreUnavailable(FAULT)
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"cron": "* * * * *"}, key="often")
    for problem in (fault, SchemaOutdated(FAULT), RuntimeError(FAULT), ValueError(FAULT)):
        with office.broken(store.schedules, "list", problem):
            office.ask(f"GET {MINE}")
            office.ask(f"GET {ANYS}")
        with office.broken(store.index, "claim_due", problem):
            office.tick(1)
        with office.broken(store.ledger, "begin", problem):
            office.tick(1)
    transport = wiring.transport()
    with office.broken(transport, "deliver", ConnectionError("Cookie: x=canary-transport-error")):
        office.tick(5)
        with office.broken(store.ledger, "release", fault):
            office.tick(1)
    store.index.upsert(IndexRow("a/b", "k", "* * * * *", None, office.running.clock.now))
    with office.broken(store.ledger, "reject", fault):
        office.tick(1)
    with office.broken(done, "delete_done", fault):
        again = {"action": "work", "policies": {"maxRuns": 1, "afterCompletion": "delete"}}
        office.ask(f"PUT {MINE}{ONE}", SCHEDULE | again | {"cron": "* * * * *"}, key="gone-soon")
        office.tick(1)


def operators_mend(office: Office) -> None:
    """Mend a row, also while the outcome of that cannot be recorded."""
    mend = f"POST {ANYS}{ONE}/mend"
    office.ask(mend)
    with office.broken(type(office.running.store.shelf), "end_operation", StoreUnavailable(FAULT)):
        office.ask(mend)
    told(office)


def operators_act(office: Office) -> None:
    """Act on occurrences, on groups, and with backfills, by routes and by commands."""
    store = office.running.store
    found = {one.state: one.id for one in store.ledger.find("ann", "told", limit=50)}
    for occurrence in found.values():
        office.ask("GET /api/occurrences/{id}", id=occurrence)
        office.command("occurrences", "show", occurrence)
    office.ask("GET /api/occurrences")
    for verb in ("retry", "cancel", "delete"):
        office.ask(f"POST /api/all-occurrences/{verb}", {"state": "dead", "dryRun": True})
        office.command("occurrences", verb, "--all", "--state", "dead")
    for verb in ("retry", "cancel"):
        office.ask(f"POST /api/occurrences/{{id}}/{verb}", id=min(found.values()))
    office.command("occurrences", "list", "--state", "dead")
    office.ask("DELETE /api/occurrences/{id}", id=min(found.values()))
    office.ask("PUT /api/pauses/{scope}", {"note": PAUSE_NOTE}, scope="flow~3Aabsent")
    office.command("pause", "flow", "absent", "--note", PAUSE_NOTE)
    office.ask("GET /api/pauses")
    office.command("pauses")
    office.command("console")
    office.ask("DELETE /api/pauses/{scope}", scope="flow~3Aabsent")
    office.command("resume", "flow", "absent")
    static = "POST /api/static-schedules/{flow}/{id}"
    office.ask(f"{static}/pause", {"note": PAUSE_NOTE}, flow="absent", id="nightly")
    office.ask(f"{static}/resume", flow="absent", id="nightly")
    office.ask("POST /api/recover", {"how": FAULT})
    office.ask("POST /api/recover", {"how": "skip"})
    limit: dict[str, Json] = {"parallel": 3, "note": PAUSE_NOTE}
    office.ask("PUT /api/limits/{scope}", limit, scope="flow~3Aabsent")
    office.command("limit", "flow", "absent", "--rate", "9/day", "--note", PAUSE_NOTE)
    office.ask("GET /api/limits")
    office.command("limits")
    office.ask("DELETE /api/limits/{scope}", scope="flow~3Aabsent")
    office.command("unlimit", "flow", "absent")
    backfills = "/api/users/{user}/backfills"
    office.ask(f"POST {ANYS}{ONE}/backfills", {"from": "x", "token": FAULT})
    office.ask(f"GET {backfills}")
    office.ask(f"GET {backfills}/{{key}}")
    for verb in ("continue", "stop"):
        office.ask(f"POST {backfills}/{{key}}/{verb}")
    office.command("backfill", "list", "--user", "ann")
    for verb in ("show", "continue", "stop", "start"):
        office.command("backfill", verb, "k", "--user", "ann")


def the_local_stack_fails(office: Office) -> None:
    """Let the local stack fail at its start, and later in a tick, which its terminal tells."""
    with patch.dict(os.environ), office.broken(wiring, "migrate", StoreUnavailable(FAULT)):
        office.command("local", "--port", "0", "--store", DATABASE)
    stack, fault = office.running.stack, StoreUnavailable(FAULT)
    stack.stop()
    for problem in (fault, RuntimeError(FAULT)):
        with office.broken(stack, "tick", problem):
            stack._tick_each_minute()


def trouble_is_told(office: Office) -> None:
    """Tell of trouble on a bus that works, and on one that fails. Earlier trouble was told on the
    terminal.
    """
    set_again(office.patch, "EVENT_BUS", "operations")
    office.patch.setattr(announcing, "client_of", lambda *_, **__: office)
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"cron": "* * * * *"}, key="often")
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"cron": "* * * * *", "action": "behind"}, key="slow")
    office.tick(1)
    office.run_queue()
    with office.broken(announcing, "client_of", ConnectionError(FAULT)):
        office.tick(1)
    set_again(office.patch, "EVENT_BUS", "")


def deployments_and_hours(office: Office) -> None:
    """Let the function `migrate` take its steps, count, and find faults."""
    store, clock = office.running.store, office.running.clock
    office.migrate({})
    office.migrate(event("audit"))
    store.index.remove("ann", "k")
    row, record = store.index.get("ann", "works"), store.schedules.get("ann", "told")
    assert row
    assert record
    store.index.upsert(replace(row, next_fire_at=clock.now + 30 * 86_400_000))
    store.index.upsert(IndexRow("ann", "call", f"99 * * * * {FAULT}", None, clock.now))
    store.schedules.put(replace(record, flow="absent"))
    office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"timezone": "Europe/Berlin"}, key="zoned")
    office.patch.setattr(domain_rows, "digest_of", lambda _zone: "other")
    office.tick()
    clock.now += 2 * 86_400_000
    office.migrate(event("audit"))
    tight(office)
    problem = StoreUnavailable(FAULT)
    with office.broken(store.shelf, "every_book", problem):
        office.migrate({"Step": "schedules"})
        office.migrate(event("audit"))
    sent: list[bytes] = []
    office.patch.setattr(custom_resource, "put", lambda _url, body: sent.append(body))
    with office.broken(wiring, "migrate", ConnectionError(FAULT)):
        office.migrate(event("custom-resource-create"))
    office.written["answer to CloudFormation"] += [body.decode() for body in sent]


def tight(office: Office) -> None:
    """Put a schedule that fires more often than the tick comes."""
    with pytest.MonkeyPatch.context() as seldom:
        tick_seldom(office.running, seldom)
        office.ask(f"PUT {MINE}{ONE}", SCHEDULE | {"cron": "* * * * *"}, key="tight")


def a_backup_is_restored(office: Office) -> None:
    """Take the witness away; then let it be newer than the store."""
    store, witness = office.running.store, wiring.witness()
    assert witness
    store.shelf.keep_note(NOTE, "1")
    with office.broken(type(witness), "read", WitnessUnavailable(FAULT)):
        office.tick()
        office.migrate(event("audit"))
    witness.write(office.running.clock.now)
    office.tick()
    office.migrate(event("audit"))
    recover(store, witness, "skip", now=office.running.clock.now, dry_run=False, may_go_on=bool)


def users_leave(office: Office) -> None:
    """Delete users: the log tells of each once more."""
    for base in (MINE, ANYS):
        office.ask(f"DELETE {base}{ONE}", key="k" if base == MINE else "twice")
    told(office)
    office.ask("DELETE /api/users/{user}")


ACTS: Final[tuple[Callable[[Office], None], ...]] = (
    users_write,
    times_come,
    jobs_are_made,
    agents_call,
    forecasts_are_read,
    callers_dispatch,
    commands_speak,
    schedules_move,
    limits_are_reached,
    parts_break,
    trouble_is_told,
    deployments_and_hours,
    a_backup_is_restored,
    operators_mend,
    operators_act,
    users_leave,
    the_local_stack_fails,
)


def act(office: Office) -> Iterator[str]:
    """Let everything happen, one act after another."""
    for one in ACTS:
        one(office)
        yield one.__name__
