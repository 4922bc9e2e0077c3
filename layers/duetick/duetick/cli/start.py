"""The start of the `duetick` command: if an extra is missing, it names the extra."""

import sys
from collections.abc import Sequence
from typing import Final

OF_EXTRAS: Final = {
    "aws_lambda_powertools": "cli",
    "boto3": "cli",
    "botocore": "cli",
    "croniter": "cli",
    "pg8000": "postgres",
    "pydantic": "cli",
    "scramp": "postgres",
    "yaml": "cli",
}
"""The extra that brings each package."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return its exit code."""
    try:
        from duetick.cli.main import main as run
    except ModuleNotFoundError as missing:
        needed = name_extra(missing)
        if not needed:
            raise
        print(f"duetick: {needed}", file=sys.stderr)
        return 1
    return run(arguments)


def name_extra(problem: Exception) -> str:
    """Return a text that names the extra of a missing module; nothing for any other problem."""
    missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
    extra = OF_EXTRAS.get((missing or "").partition(".")[0])
    needs = f"the command needs {missing}, which is not installed."
    return f"{needs} Do: pip install 'duetick[{extra}]'" if extra else ""
