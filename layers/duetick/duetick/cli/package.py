"""`duetick package`: the deployable of this version, the same in every folder.

It holds the template with its functions and layers as archives, the API's document, the changes of
each version, and the digest of each file.
"""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

from duetick.cli.folders import archive, copy, digest, digest_of, replaced
from duetick.cli.parsing import known_by_its_parser
from duetick.cli.problem import CliProblem
from duetick.cli.programs import Words, find, lambdas_python, run
from duetick.cli.showing import say
from duetick.cli.template import archive_of, read_template, released, written
from duetick.cli.tree import PACKAGE, tree
from duetick.version import VERSION

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

FOLDER: Final = Path(".duetick/stack")
TEMPLATE: Final = "template.yaml"
SUMS: Final = "SHA256SUMS"
MADE_FROM: Final = ".made-from"
LAYERS: Final = {"deps": "DepsLayer", "duetick": "DuetickLayer"}
"""The folders of the layers, and what their Makefiles call them."""


def add_package(commands: "Commands") -> None:
    """Add the command."""
    told = "make the deployable of this version: a template with its layers, to nest or to deploy"
    parser = known_by_its_parser(commands.add_parser("package", help=told, description=told))
    parser.add_argument("--to", type=Path, default=FOLDER, help=f"the folder; default {FOLDER}")
    parser.add_argument(
        "--bucket", help="put it into this bucket of yours too, and print the URL of its template"
    )
    parser.set_defaults(command=_package)


def _package(chosen: argparse.Namespace) -> None:
    made = make(chosen.to)
    say(f"Duetick {VERSION} {'is made' if made else 'was there'}: {chosen.to / TEMPLATE}")
    if chosen.bucket:
        print(publish(chosen.to, chosen.bucket))


def make(folder: Path) -> bool:
    """Make the deployable in a folder. Return False if it is there, whole and of this code."""
    source = digest([PACKAGE, *(tree() / part for part in ("functions", "layers/deps", TEMPLATE))])
    if _is_whole(folder) and (folder / MADE_FROM).read_text() == source:
        return False
    if folder.exists() and not (folder / SUMS).is_file():
        raise CliProblem(f"{folder} is something else already. Name another folder: --to.")
    with replaced(folder) as made:
        _make_archives(made)
        template = read_template((tree() / TEMPLATE).read_text())
        (made / TEMPLATE).write_text(written(released(template)))
        copy(PACKAGE / "api/openapi.json", made / "openapi.json")
        copy(tree() / "layers/duetick/CHANGELOG.md", made / "CHANGELOG.md")
        names = sorted(path.name for path in made.iterdir())
        (made / SUMS).write_text("".join(f"{digest_of(made / one)}  {one}\n" for one in names))
        (made / MADE_FROM).write_text(source)
    return True


def _is_whole(folder: Path) -> bool:
    """Return True if each file is there with its digest."""
    try:
        lines = (folder / SUMS).read_text().splitlines()
        return all(digest_of(folder / line[66:]) == line[:64] for line in lines)
    except OSError:
        return False


def _make_archives(made: Path) -> None:
    with TemporaryDirectory() as name:
        work = Path(name)
        for app in sorted((tree() / "functions").glob("*/app.py")):
            function = app.parent.name
            copy(app.parent, work / function)
            archive(work / function, made / archive_of(function))
        for layer in LAYERS:
            _build_layer(layer, work / f"source-{layer}", work / f"made-{layer}")
            archive(work / f"made-{layer}", made / archive_of(layer))


def _build_layer(layer: str, source: Path, into: Path) -> None:
    """Build a layer by its Makefile, as `sam build` does in a checkout."""
    copy(tree() / "layers" / layer, source)
    if layer == PACKAGE.name:
        copy(PACKAGE, source / PACKAGE.name)
    into.mkdir()
    program = find("make", "A layer is built by its Makefile: install make.")
    path = os.pathsep.join([str(lambdas_python().parent), os.environ.get("PATH", "")])
    run([program, "-s", f"build-{LAYERS[layer]}", f"ARTIFACTS_DIR={into}"], source, {"PATH": path})


def publish(folder: Path, bucket: str) -> str:
    """Put the deployable into a bucket, by `sam package`. Return the URL of its template."""
    sam = find("sam", "The AWS SAM CLI puts the deployable into a bucket: pip install aws-sam-cli.")
    prefix = f"duetick/{VERSION}"
    with TemporaryDirectory() as name:
        packaged = Path(name) / TEMPLATE
        where: Words = ["--s3-bucket", bucket, "--s3-prefix", prefix]
        given: Words = ["--template-file", TEMPLATE, "--output-template-file", packaged]
        run([sam, "package", *given, *where], folder)
        return _upload(packaged, bucket, f"{prefix}/{TEMPLATE}")


def _upload(packaged: Path, bucket: str, key: str) -> str:
    """Put a template into a bucket. Return its URL."""
    from duetick.cli.deployed import own_session

    s3 = cast("Any", own_session().create_client("s3"))
    s3.put_object(Bucket=bucket, Key=key, Body=packaged.read_bytes())
    region = s3.get_bucket_location(Bucket=bucket).get("LocationConstraint") or "us-east-1"
    return f"https://{bucket}.s3.{region}.amazonaws.com/{key}"
