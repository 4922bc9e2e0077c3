"""`duetick new`, `layer` and `package`: the commands of a repository of one's own.

Their use imports the modules that they need: no other command waits for these.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duetick.cli.parsing import note_parser
from duetick.cli.showing import say
from duetick.version import VERSION

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

STACK: Final = Path(".duetick/stack")
FLOWS: Final = Path(".duetick/flows")
ARCHITECTURES: Final = ("arm64", "x86_64")

TOLD: Final = """{folder} is made. In it:

  make run       the whole product on this machine
  make test      the tests of your flows
  make deploy    your stack, with Duetick in it, by the AWS SAM CLI
"""


def add_projects(commands: "Commands") -> None:
    """Add the commands."""
    new = _add(
        commands, "new", "make a repository of your own: template, a flow, its tests, commands, CI"
    )
    new.add_argument("folder", type=Path, help="the folder: its name is also the stack's")
    new.set_defaults(command=_new)

    layer = _add(
        commands, "layer", "make the layer of your flows, with the packages that they need"
    )
    layer.add_argument(
        "packages", nargs="+", type=Path, help="the package of your flows, and your other packages"
    )
    layer.add_argument(
        "--requirements", type=Path, help="the file of their requirements, as pip reads it"
    )
    layer.add_argument("--to", type=Path, default=FLOWS, help=f"the folder; default {FLOWS}")
    layer.add_argument(
        "--architecture", choices=ARCHITECTURES, default="arm64", help="default arm64"
    )
    layer.set_defaults(command=_layer)

    package = _add(
        commands, "package", "make the deployable of this version: a template with its layers"
    )
    package.add_argument("--to", type=Path, default=STACK, help=f"the folder; default {STACK}")
    package.add_argument(
        "--bucket", help="put it into this bucket of yours too, and print the URL of its template"
    )
    package.set_defaults(command=_package)


def _add(commands: "Commands", name: str, told: str) -> argparse.ArgumentParser:
    return note_parser(commands.add_parser(name, help=told, description=told))


def _new(chosen: argparse.Namespace) -> None:
    from duetick.cli.new import make_repository

    make_repository(chosen.folder.absolute())
    print(TOLD.format(folder=chosen.folder), end="")


def _layer(chosen: argparse.Namespace) -> None:
    from duetick.cli.flows_layer import make_layer

    make_layer(chosen.packages, chosen.requirements, chosen.to.absolute(), chosen.architecture)
    say(f"The layer of {', '.join(map(str, chosen.packages))} is made: {chosen.to}")


def _package(chosen: argparse.Namespace) -> None:
    from duetick.cli.package import TEMPLATE, make, publish

    made = make(chosen.to.absolute())
    say(f"Duetick {VERSION} {'is made' if made else 'was there'}: {chosen.to / TEMPLATE}")
    if chosen.bucket:
        print(publish(chosen.to, chosen.bucket))
