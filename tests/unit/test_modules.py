"""A short module has two users, or somebody would look for it by its name: here is who, and why."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TOP = Path(__file__).parents[2]
LAYER = TOP / "layers/duetick/duetick"
SHORT: Final = 120

LOOKED_FOR: Final = {
    "actions.addresses": "the addresses that a webhook may not call",
    "actions.aws": "the actions that call AWS, each by name",
    "api.reads": "the operations of the API that read more than a record",
    "api.routing": "the route of a method and a path",
    "api.writes": "the operations of the API that read a body",
    "api.records": "the operations of the API that are about no user alone",
    "api.__main__": "`python -m duetick.api` writes the document",
    "api.views.forecasts": "the answers about forecasts",
    "api.views.timelines": "the answers about timelines",
    "api.views.users": "the answers about all that is kept of a user",
    "cli.upcoming": "`duetick upcoming`",
    "cli.local_flows": "the flows of the local stack, loaded again after a change",
    "cli.new": "`duetick new`",
    "cli.own_wheel": "the wheel that a new repository gets",
    "cli.projects": "`duetick new` and `duetick package`, as the command takes them",
    "cli.redrive": "`duetick redrive`",
    "cli.start": "the command's start: it says which extra is missing",
    "cli.template": "the template of a release",
    "cli.welcome": "what the local stack prints at its start",
    "api.backfills": "the operations of operators on backfills",
    "api.group_pauses": "the routes of the pauses of a user, of a flow, of everything",
    "api.jobs": "the routes of a user's jobs",
    "api.statics": "the routes of static schedules, which have no user",
    "cli.wrong": "the command that shows more of each thing that is wrong",
    "api.recovery": "the route of a recovery, whose work no other route pays for",
    "api.puts": "the routes of batches of schedules",
    "api.limits": "the routes of the limits of a user, of a flow, of an action",
    "cli.transfer.aws": "loaded only if AWS itself is asked for its schedules",
    "cli.transfer.crontab_writer": "schedules as a crontab",
    "cli.transfer.eventbridge_writer": "schedules as EventBridge takes them",
    "cli.transfer.pgboss_writer": "schedules as rows of pg-boss",
    "core.store.within": "a begin under a limit: O-03",
    "cli.pauses": "`duetick pause`, `resume` and `pauses`",
    "cli.workers": "`duetick workers` and `duetick locks`",
    "cli.purge": "`duetick purge`",
    "cli.recover": "`duetick recover`",
    "core.inbox": "the jobs of other applications: K-03",
    "core.locks": "named locks: J-08",
    "core.deployment": "the steps of functions/migrate",
    "core.dispatch.callers": "an outside caller's occurrence: D-04",
    "core.dispatch.outside_ids": "calls by an outside id, which no tick makes: G-08",
    "core.tick.backfilling": "loaded only if a backfill stands, so that no other tick pays for it",
    "core.store.failing": "the auto-pause of a schedule that fails again and again",
    "core.coroutines": "the loop that the coroutines of a process share",
    "domain.choosing": "the difference between a chosen policy and a default: D-09",
    "domain.left_out": "the lines of a history that a pause of a group left out",
    "domain.expression.rules": "the rules of zones by their content: A-02",
    "domain.expression.gaps": "loaded for a write alone: the smallest gap",
    "domain.expression.mapped": "loaded for a day map in JSON alone, which no tick reads",
    "domain.expression.nearest": "loaded for a refusal alone, so that no cold start pays for it",
    "ports.transport": "one of the two ports",
    "ports.witness": "the witness of a store, outside it",
    "runtime.helping": "the ticks that share a backlog: loaded only by those",
    "runtime.receiving": "messages of the queue, as Lambda hands them on",
    "runtime.steps": "the steps of functions/migrate that operators ask for",
    "runtime.database": "loaded only if a secret opens the database",
    "stores.connections": "a connection factory of the application's own",
    "stores.dynamodb.alike": "what a forecast reads of a table, and what that costs",
    "stores.sql.alike": "what a forecast reads of a database",
    "stores.dynamodb.claim": "a claim of due rows on DynamoDB",
    "stores.dynamodb.own_writes": "the check of an action's own writes",
    "stores.dynamodb.erasure": "erase on DynamoDB",
    "stores.dynamodb.transaction": "`ctx.transaction` on DynamoDB",
    "stores.dynamodb.operations": "the record of operations on DynamoDB: O-01",
    "stores.postgres.releases": "the functions of the database, made and dropped by migrate alone",
    "stores.postgres.roles": "the users of the database and their rights",
    "stores.sql.operations": "the record of operations on SQL: O-01",
    "stores.sql.accounts": "what verify reads on SQL",
    "stores.sql.retiring": "the deletion of what has ended on SQL: J-10",
    "stores.sql.transaction": "`ctx.transaction` on SQL",
    "transports.inline": "the transport of tests, for any application",
}
"""The short modules with one user, each with what its reader looks for."""


def modules() -> dict[str, Path]:
    """Return the modules of the layer by name, without the packages' own, the published tests, and
    the files that `duetick new` writes.
    """
    return {
        ".".join(path.relative_to(LAYER).with_suffix("").parts): path
        for path in LAYER.rglob("*.py")
        if path.name != "__init__.py" and not {"testing", "skeleton"} & set(path.parts)
    }


@cache
def parsed(path: Path) -> ast.Module:
    """Return a file as Python reads it."""
    return ast.parse(path.read_text())


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, without the name of the layer."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duetick"):
            base = str(node.module).removeprefix("duetick").removeprefix(".")
            yield base
            yield from (f"{base}.{alias.name}".removeprefix(".") for alias in node.names)


@cache
def users() -> dict[str, set[Path]]:
    """Return the files of the layer and the functions that import each module."""
    found = defaultdict(set)
    for path in [*LAYER.rglob("*.py"), *TOP.glob("functions/*/*.py")]:
        for name in imported(path):
            if "testing" not in path.parts:
                found[name].add(path)
    return found


def test_a_short_module_has_two_users_or_a_reason() -> None:
    found = users()
    lonely = {
        name
        for name, path in modules().items()
        if len(found[name]) < 2 and len(path.read_text().splitlines()) < SHORT
    }
    assert lonely == set(LOOKED_FOR)


@cache
def words(path: Path) -> Counter[str]:
    """Count the words of a file."""
    return Counter(re.findall(r"\w+", path.read_text()))


def named(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module gives to its functions, types and values."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list:
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.slow
def test_a_name_of_a_module_is_read_there_or_elsewhere() -> None:
    """The routes name the API's functions in a text. Applications use the last."""
    dead = set()
    for module, path in modules().items():
        others = [words(one) for one in [LAYER / "api/routes.py", *users()[module]]]
        for name in named(parsed(path)):
            if words(path)[name] == 1 and not any(name in one for one in others):
                dead.add(f"{module}.{name}")
    assert dead == {"transports.inline.InlineTransport"}
