"""Starts ministack, in an environment of its own: functions run in the Python it is given.

That Python is one with what Lambda brings and no more, so that a dependency that a layer forgot is
missing here as it would be there.
"""

import sys
import threading
from collections.abc import Iterable
from typing import Any

sys.executable = sys.argv.pop()

from ministack.app import main  # type: ignore[import-not-found]  # noqa: E402
from ministack.core import lambda_runtime  # type: ignore[import-not-found]  # noqa: E402

end = lambda_runtime.kill_workers


def end_when_idle(workers: Iterable[Any]) -> None:
    """An invocation under way runs to its end, as it does on AWS.

    ministack would end each process of a function that is updated, or of which one invocation
    failed, those too that answer another caller: who is then told of a file that was not found.
    """
    for worker in filter(None, workers):
        threading.Thread(target=_end_one, args=(worker,), daemon=True).start()


def _end_one(worker: Any) -> None:  # noqa: ANN401
    with worker._lock:
        end([worker])


lambda_runtime.kill_workers = end_when_idle

if __name__ == "__main__":
    main()
