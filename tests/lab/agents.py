"""The official SDK of the Model Context Protocol, as an agent that calls this product."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.lab.process import LabError
from tests.lab.pythons import environment

SDK: Final = "The official SDK for agents"
SCRIPT: Final = Path(__file__).with_name("official_agent.py")
MODES: Final = ("legacy", "auto", "2026-07-28")
"""The ways in which it connects: with a handshake, by asking first, and without either."""

Calls: TypeAlias = Sequence[tuple[str, Mapping[str, object]]]


def official_agent(
    url: str, token: str, calls: Calls, headers: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Let the agent connect in each mode, list the tools, and make the calls. Return its
    answers.
    """
    asked = {
        "url": url,
        "token": token,
        "calls": calls,
        "headers": dict(headers or {}),
        "modes": MODES,
    }
    python = environment("mcp", SDK) / "bin" / "python"
    done = subprocess.run(
        [python, SCRIPT], input=json.dumps(asked), capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"{SDK} failed:\n{done.stderr}")
    told: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return told
