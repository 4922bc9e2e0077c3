"""A built function behind the real Lambda runtime interface, which tells its cold start."""

import http.client
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.credentials import DUMMY
from tests.lab.process import LOCALHOST, LabError, Server, answers, free_port
from tests.lab.pythons import environment
from tests.lab.this_machine import ARCHITECTURE

PART = "The Lambda runtime"
INVOCATIONS = "/2015-03-31/functions/function/invocations"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A payload and the figures of its REPORT line; `init_ms` where the function started cold."""

    payload: dict[str, Any]
    duration_ms: float
    init_ms: float | None


class LambdaRuntime:
    """One sandbox: its first invocation is cold, the others are warm."""

    def __init__(
        self,
        folder: Path,
        function: Path,
        layers: Sequence[Path] = (),
        *,
        handler: str = "app.handler",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        settings = _environment(function, layers, handler, env or {})
        self.server = Server(
            [*_emulator(self.port), _python(), "-m", "awslambdaric", handler],
            folder / "lambda-runtime.log",
            env=settings,
            cwd=function,
        )
        self.server.wait_until(lambda: answers(self.port))

    def invoke(self, event: object) -> Invocation:
        """Invoke it with an event, and wait for the answer and its REPORT line."""
        reports = len(self._reports())
        payload = self.post(event)
        self.server.wait_until(lambda: len(self._reports()) > reports)
        report = self._reports()[-1]
        duration, init = (_figure(name, report) for name in ("Duration", "Init Duration"))
        return Invocation(payload, duration or 0.0, init)

    def stop(self) -> None:
        self.server.stop()

    def post(self, event: object) -> dict[str, Any]:
        """Invoke it with an event; its answer, as soon as it is there."""
        connection = http.client.HTTPConnection(LOCALHOST, self.port, timeout=60)
        try:
            connection.request("POST", INVOCATIONS, json.dumps(event))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def _reports(self) -> list[str]:
        lines = self.server.log.read_text(errors="replace").splitlines()
        return [line for line in lines if "REPORT RequestId" in line]


def _python() -> Path:
    """Return a Python with the packages that Lambda brings, and no more."""
    return environment("lambda", PART) / "bin" / "python"


def _emulator(port: int) -> list[str | Path]:
    found = environment("sam", PART).glob(
        f"lib/python*/site-packages/samcli/local/rapid/aws-lambda-rie-{ARCHITECTURE}"
    )
    program = next(found, None)
    if not program:
        raise LabError(f"The AWS SAM CLI carries no aws-lambda-rie for {ARCHITECTURE}.")
    here = [f"{LOCALHOST}:{port}", f"{LOCALHOST}:{free_port()}"]
    return [
        program,
        "--runtime-interface-emulator-address",
        here[0],
        "--runtime-api-address",
        here[1],
    ]


def _environment(
    function: Path, layers: Sequence[Path], handler: str, env: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment as Lambda sets it: the function first, then its layers, then the
    runtime.
    """
    path = [function, *(layer / "python" for layer in layers)]
    return {
        "PATH": os.environ.get("PATH", ""),
        **DUMMY,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "LAMBDA_TASK_ROOT": str(function),
        "_HANDLER": handler,
        # Lambda's file system is read-only: each cold start compiles anew.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        **env,
    }


def _figure(name: str, report: str) -> float | None:
    found = re.search(rf"(?:^|\t){name}: ([\d.]+) ms", report)
    return float(found[1]) if found else None
