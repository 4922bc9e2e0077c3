"""`duetick workers` and `duetick locks`: the last ticks and background runs, and who has a lock.

They ask the API of a local or a deployed stack; with `--store` they read a store itself.
"""

import argparse
from typing import TYPE_CHECKING, Final

from duetick.cli.asking import add_json, add_place, advice, operators_of
from duetick.cli.parsing import note_parser, whole
from duetick.cli.problem import WrongUsage
from duetick.cli.showing import Column, ShownItem, field, show_many
from duetick.core.reports import MOST_WORKERS, locks_json, workers_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetick.cli.asking import Commands

_TOLD: Final = {
    "workers": "operators: the last ticks and runs in the background, the newest first",
    "locks": "operators: the named locks, and who has them",
}
MOST_SHOWN: Final = 20
NO_WORKER: Final = "No tick or run in the background has reported in eight days."


def add_workers(commands: "Commands") -> None:
    """Add the two commands."""
    workers = _add(commands, "workers")
    workers.add_argument(
        "--limit",
        type=whole(1, MOST_WORKERS),
        default=MOST_SHOWN,
        help=f"the most entries; default {MOST_SHOWN}, at most {MOST_WORKERS}",
    )
    workers.set_defaults(command=_workers)
    _add(commands, "locks").set_defaults(command=_locks)


def _add(commands: "Commands", name: str) -> argparse.ArgumentParser:
    told = _TOLD[name]
    parser = note_parser(commands.add_parser(name, help=told, description=told))
    add_place(parser)
    parser.add_argument("--store", help="read this store itself, without an API")
    add_json(parser)
    return parser


def _workers(chosen: argparse.Namespace) -> None:
    found: Sequence[Mapping[str, object]]
    if _is_of_store(chosen):
        from duetick.cli.stores import open_checked

        with open_checked(chosen.store) as store:
            found = workers_json(store, chosen.limit)
    else:
        with advice(chosen):
            found = operators_of(chosen).workers(limit=chosen.limit)["workers"]
    show_many(map(dict, found), WORKERS, as_json=chosen.json, none=NO_WORKER)


def _locks(chosen: argparse.Namespace) -> None:
    found: Sequence[Mapping[str, object]]
    if _is_of_store(chosen):
        from duetick.cli.stores import open_checked

        with open_checked(chosen.store) as store:
            found = locks_json(store)
    else:
        with advice(chosen):
            found = operators_of(chosen).locks()["locks"]
    show_many(map(dict, found), LOCKS, as_json=chosen.json, none="Nobody has a lock.")


def _is_of_store(chosen: argparse.Namespace) -> bool:
    if chosen.store is not None and (chosen.stack or chosen.url):
        raise WrongUsage("Either --store, or --stack or --url.")
    return chosen.store is not None


def _counts(item: ShownItem) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(item["counts"].items()))


WORKERS: Final = (
    field("STARTED", "startedAt"),
    field("KIND", "kind"),
    field("STATE", "state"),
    field("MS", "milliseconds"),
    field("LATE MS", "latenessMilliseconds"),
    Column("COUNTS", _counts),
    field("ID", "id"),
)
LOCKS: Final = (
    field("NAME", "name"),
    field("STATE", "state"),
    field("OWNER", "owner"),
    field("SINCE", "since"),
    field("UNTIL", "until"),
)
