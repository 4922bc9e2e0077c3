"""The context that the Lambda runtime passes with an event, for handlers that run here."""

import time
import uuid
from collections.abc import Callable
from typing import Final

TIME_MS: Final = 60_000


class LocalContext:
    """The attributes that handlers and Powertools read."""

    function_name = "local"
    function_version = "$LATEST"
    log_stream_name = "local"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:local:000000000000:function:local"

    def __init__(self, time_ms: int = TIME_MS, stopped: Callable[[], bool] = lambda: False) -> None:
        """`stopped` exists only here: Lambda never asks an invocation to stop."""
        self.stopped = stopped
        self.aws_request_id = str(uuid.uuid4())
        self._end = time.monotonic() + time_ms / 1_000

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the invocation would end."""
        return max(0, int((self._end - time.monotonic()) * 1_000))
