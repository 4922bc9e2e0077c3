"""The tick: claim what is due, and deliver it."""

from duetick.core.tick.loop import never, run_tick
from duetick.core.tick.report import TickReport

__all__ = ["TickReport", "never", "run_tick"]
