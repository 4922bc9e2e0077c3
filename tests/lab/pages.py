"""Build the pages and the TypeScript client: `python -m tests.lab.pages`, or `make pages`.

The built files are checked in, as the API's document is: nobody needs Node.js to run Duetick.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.lab.cache import TOP
from tests.lab.missing import MissingPartError
from tests.lab.node import WEB, node, node_modules
from tests.lab.process import LabError, run

BUILT: Final = {
    "client/src/api.d.ts": WEB / "client" / "src" / "api.d.ts",
    "client/lib": WEB / "client" / "lib",
    "pages": TOP / "layers" / "duetick" / "duetick" / "pages",
}
"""Where what is built is checked in."""


def build(into: Path) -> None:
    """Build everything into a folder."""
    run(
        [node(), WEB / "build.mjs", into],
        env={**os.environ, "DUETICK_NODE_MODULES": str(node_modules())},
    )


def contents(place: Path) -> dict[str, bytes]:
    """Return the files of a folder by their names. The name of a single file is empty."""
    if place.is_file():
        return {"": place.read_bytes()}
    found = sorted(path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


def main() -> int:
    """Build everything, and put it where it is checked in."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            build(Path(folder))
        except (MissingPartError, LabError) as problem:
            sys.stderr.write(f"{problem}\n")
            return 1
        for name, place in BUILT.items():
            made = Path(folder) / name
            if made.is_file():
                shutil.copyfile(made, place)
                continue
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(made, place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
