"""Flows that go wrong in every way, put into the layer of a stack that is only for tests."""

import os
import sys
import time
from pathlib import Path

from duetick import Context, Flow

trials = Flow("trials")
broken = Flow("broken")
empty = Flow("empty")


@trials.action("works")
def works(_: object, _ctx: Context) -> None:
    """Come to an end."""


@trials.action("raises")
def raises(_: object, _ctx: Context) -> None:
    """Fail, with a secret in the error."""
    raise RuntimeError("password=hunter2")


@trials.action("exits")
def exits(_: object, _ctx: Context) -> None:
    """End the process, as far as it can."""
    sys.exit(3)


@trials.action("takes")
def takes(seconds: float, _ctx: Context) -> None:
    """Take so long."""
    time.sleep(seconds)


@trials.action("holds")
def holds(until: str, _ctx: Context) -> None:
    """Go on until there is such a file."""
    while not Path(until).exists():
        time.sleep(0.05)


@trials.action("holds_long", background=True)
def holds_long(until: str, ctx: Context) -> None:
    """Hold as `holds` does, in an invocation of its own."""
    holds(until, ctx)


@trials.action("dies", background=True)
def dies(_: object, _ctx: Context) -> None:
    """End the process, without a chance to say anything."""
    os._exit(3)


@trials.action("writes", transactional=True)
def writes(fails: bool, ctx: Context) -> None:
    """Leave an effect behind in the transaction that settles; fail before its end if told to."""
    with ctx.transaction() as own:
        if own.dialect == "dynamodb":
            item = {"id": {"S": os.urandom(8).hex()}, "of": {"S": ctx.schedule_id}}
            own.write({"Put": {"TableName": "effects", "Item": item}})
        else:
            own.run("CREATE TABLE IF NOT EXISTS effects (id text)")
            own.run("INSERT INTO effects VALUES (:id)", id=ctx.schedule_id)
        if fails:
            raise RuntimeError("password=hunter2")


@broken.resolver
def cannot(_id: str, _ctx: object) -> None:
    """Fail, as a resolver does whose database is away."""
    raise LookupError("password=hunter2")


@empty.resolver
def finds_nothing(_id: str, _ctx: object) -> None:
    """Return None: the resolver knows no schedule."""
