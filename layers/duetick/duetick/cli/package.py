"""`duetick package`: the deployable of this version, the same in every folder.

It holds the template with its functions and layers as archives, the API's document, the changes of
each version, and the digest of each file.
"""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from duetick.cli.folders import archive, copy, digest, digest_of, replace
from duetick.cli.problem import CliProblem
from duetick.cli.programs import Words, find, lambdas_python, run
from duetick.cli.template import archive_of, dump, make_release, read_template
from duetick.cli.tree import PACKAGE, tree
from duetick.version import VERSION

TEMPLATE: Final = "template.yaml"
SUMS: Final = "SHA256SUMS"
MADE_FROM: Final = ".made-from"
LAYERS: Final = {"deps": "DepsLayer", "duetick": "DuetickLayer"}
"""The folders of the layers, and what their Makefiles call them."""


def make(folder: Path) -> bool:
    """Make the deployable in a folder. Return False if it is there, whole and of this code.

    A layer that is there already, and of the same source, is not built again.
    """
    sources = {name: digest(parts) for name, parts in _sources().items()}
    known = _find_known(folder)
    if known == sources:
        return False
    if folder.exists() and not (folder / SUMS).is_file():
        raise CliProblem(f"{folder} is something else already. Name another folder: --to.")
    with replace(folder) as made:
        for layer in LAYERS:
            if known.get(layer) == sources[layer]:
                copy(folder / archive_of(layer), made / archive_of(layer))
            else:
                _archive_layer(layer, made / archive_of(layer))
        _archive_functions(made)
        template = read_template((tree() / TEMPLATE).read_text())
        (made / TEMPLATE).write_text(dump(make_release(template)))
        copy(PACKAGE / "api/openapi.json", made / "openapi.json")
        copy(tree() / "layers/duetick/CHANGELOG.md", made / "CHANGELOG.md")
        names = sorted(path.name for path in made.iterdir())
        (made / SUMS).write_text("".join(f"{digest_of(made / one)}  {one}\n" for one in names))
        (made / MADE_FROM).write_text(json.dumps(sources))
    return True


def _sources() -> dict[str, list[Path]]:
    """Return the sources of each layer, and of everything else."""
    layers, others = tree() / "layers", ("functions", TEMPLATE, "layers/duetick/CHANGELOG.md")
    return {
        "deps": [layers / "deps"],
        "duetick": [PACKAGE, layers / "duetick/Makefile"],
        "others": [tree() / part for part in others],
    }


def _find_known(folder: Path) -> dict[str, str]:
    """Return the digests of the sources of the deployable that is there; nothing unless each file
    is whole.
    """
    try:
        lines = (folder / SUMS).read_text().splitlines()
        if all(digest_of(folder / line[66:]) == line[:64] for line in lines):
            known = json.loads((folder / MADE_FROM).read_text())
            return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        pass
    return {}


def _archive_functions(made: Path) -> None:
    with TemporaryDirectory() as name:
        for app in sorted((tree() / "functions").glob("*/app.py")):
            copy(app.parent, Path(name) / app.parent.name)
            archive(Path(name) / app.parent.name, made / archive_of(app.parent.name))


def _archive_layer(layer: str, into: Path) -> None:
    """Build a layer by its Makefile, as `sam build` does in a checkout."""
    program = find("make", "A layer is built by its Makefile: install make.")
    path = os.pathsep.join([str(lambdas_python().parent), os.environ.get("PATH", "")])
    with TemporaryDirectory() as name:
        source, made = Path(name) / layer, Path(name) / "made"
        copy(tree() / "layers" / layer, source)
        if layer == PACKAGE.name:
            copy(PACKAGE, source / PACKAGE.name)
        made.mkdir()
        target = f"build-{LAYERS[layer]}"
        run([program, "-s", target, f"ARTIFACTS_DIR={made}"], source, {"PATH": path})
        archive(made, into)


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
    return f"https://s3.{region}.amazonaws.com/{bucket}/{key}"
