"""The start of the `duetick` command: it says which extra is missing, if one is."""

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
        extra = OF_EXTRAS.get((missing.name or "").partition(".")[0])
        if extra is None:
            raise
        print(
            f"duetick: the command needs {missing.name}, which is not installed. "
            f"Do: pip install 'duetick[{extra}]'",
            file=sys.stderr,
        )
        return 1
    return run(arguments)
