"""One slot and a virtual clock: of all tasks of a simulation, one runs at a time.

A task is a thread, so that the real code runs in it as it is. It hands the slot over where it
waits, and nowhere else. The times at which the tasks wake decide which one is next, so the same
simulation runs the same way every time. A task whose process has died is never woken: nothing of it
runs any more, until the simulation has been judged and is closed.
"""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

Work = Callable[[], object]

JOIN_SECONDS: Final = 30
"""Seconds that a thread may take to end once its simulation is closed."""


class Dead(BaseException):
    """The end of a task of a dead process, raised only when the simulation is closed."""


class Stuck(AssertionError):
    """Every task waits for another one."""


@dataclass(eq=False)
class Process:
    """A process: all its tasks die at once, with its connections."""

    name: str
    alive: bool = True
    on_death: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Task:
    """A thread of a process. Only the newest `ticket` may wake it."""

    process: Process
    name: str
    runner: "_Runner"
    ticket: int = 0
    over: bool = False
    error: BaseException | None = None
    deadline: int | None = None
    waiting: list["Task"] = field(default_factory=list)


class _Runner:
    """A thread of the machine, which runs one task after another."""

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.thread: threading.Thread | None = None
        self.work: Work | None = None
        self.task: Task | None = None


class Slots:
    """All tasks of one simulation. The thread that makes it is the first one, of the world."""

    def __init__(self, start: int) -> None:
        self.now = start
        self._heap: list[tuple[int, int, int, Task]] = []
        self._order = 0
        self._idle: list[_Runner] = []
        self._every: list[_Runner] = []
        self._held = 0
        self._closing = self._stuck = False
        self.world = Task(Process("world"), "world", _Runner())
        self.current = self.world
        self.alive: set[Task] = set()
        self.failed: list[Task] = []

    def start(self, process: Process, name: str, work: Work) -> Task:
        """Start a task. It runs as soon as the present one waits."""
        runner = self._idle.pop() if self._idle else self._hire()
        task = runner.task = Task(process, name, runner)
        runner.work = work
        self.alive.add(task)
        self._wake_at(task, self.now)
        return task

    def pause(self, milliseconds: int) -> None:
        """Let that much time pass for the present task. Others run in it."""
        if self._held:
            self.now += milliseconds
            return
        self._wake_at(self.current, self.now + milliseconds)
        self._switch()

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Keep the slot in the block: a transaction is open, and others would wait for it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def join(self, task: Task, milliseconds: int | None = None) -> bool:
        """Wait until a task is over or its process has died. Return False if the time is over."""
        end = None if milliseconds is None else self.now + milliseconds
        while not task.over and task.process.alive and (end is None or self.now < end):
            task.waiting.append(self.current)
            self._park(end)
            if self.current in task.waiting:
                task.waiting.remove(self.current)
        return task.over or not task.process.alive

    def kill(self, process: Process) -> None:
        """End a process. If the present task is one of the process, this never returns."""
        process.alive = False
        process.on_death()
        for task in [one for one in self.alive if one.process is process]:
            self._end(task)
        if self.current.process is process:
            self._held = 0
            self._switch()

    def park(self, until: int | None) -> None:
        """Wait until `wake` is called for this task, or until an instant."""
        self._park(until)

    def wake(self, task: Task) -> None:
        """Let a task that waits go on."""
        self._wake_at(task, self.now)

    def close(self) -> None:
        """End all threads. The tasks of the dead raise `Dead` where they wait."""
        self._closing = True
        for runner in self._every:
            if runner.task is None:
                runner.work = None
            runner.go.release()
            if runner.thread:
                runner.thread.join(JOIN_SECONDS)
                assert not runner.thread.is_alive(), "a dead task does not end"

    @property
    def is_closing(self) -> bool:
        """True if the simulation is over and only clears up."""
        return self._closing

    def _hire(self) -> _Runner:
        runner = _Runner()
        runner.thread = threading.Thread(target=self._run, args=(runner,), daemon=True)
        runner.thread.start()
        self._every.append(runner)
        return runner

    def _run(self, runner: _Runner) -> None:
        while True:
            runner.go.acquire()
            task, work = runner.task, runner.work
            if task is None or work is None:
                return
            try:
                if not self._closing:
                    work()
            except Dead:
                pass
            except BaseException as error:
                task.error = error
            if self._closing:
                return
            if task.error:
                self.failed.append(task)
            runner.task = runner.work = None
            self._idle.append(runner)
            self._end(task)
            self._hand_on(self._next())

    def _end(self, task: Task) -> None:
        task.over = task.process.alive
        task.ticket += 1
        self.alive.discard(task)
        for other in task.waiting:
            self._wake_at(other, self.now)
        task.waiting.clear()

    def _park(self, until: int | None) -> None:
        self.current.ticket += 1
        if until is not None:
            self._wake_at(self.current, until)
        self._switch()

    def _wake_at(self, task: Task, at: int) -> None:
        if not task.process.alive or task.over:
            return
        task.ticket += 1
        self._order += 1
        heapq.heappush(self._heap, (at, self._order, task.ticket, task))

    def _switch(self) -> None:
        """Hand the slot on, and return when this task has it again."""
        if self._closing:
            raise Dead
        me = self.current
        other = self._next()
        if other is not me:
            self._hand_on(other)
            me.runner.go.acquire()
        if self._closing:
            raise Dead
        if self._stuck:
            raise Stuck("every task waits for another one")

    def _next(self) -> Task:
        while self._heap:
            at, _, ticket, task = heapq.heappop(self._heap)
            if ticket == task.ticket and task.process.alive:
                task.ticket += 1
                self.now = max(self.now, at)
                return task
        self._stuck = True
        return self.world

    def _hand_on(self, task: Task) -> None:
        self.current = task
        task.runner.go.release()


class VirtualWaitPoint:
    """`duetick.core.threads.WaitPoint` in virtual time. It needs no lock: one task runs at a
    time.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._waiting: deque[Task] = deque()

    def __enter__(self) -> bool:
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """There is nothing to release."""

    def wait(self) -> None:
        """See `WaitPoint`."""
        self._waiting.append(self._slots.current)
        self._slots.park(None)

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> None:
        """See `WaitPoint`."""
        end = self._slots.now + max(1, round(timeout * 1_000))
        while not predicate() and self._slots.now < end:
            me = self._slots.current
            self._waiting.append(me)
            self._slots.park(end)
            if me in self._waiting:
                self._waiting.remove(me)

    def notify(self, n: int = 1) -> None:
        """See `WaitPoint`."""
        for _ in range(min(n, len(self._waiting))):
            self._slots.wake(self._waiting.popleft())

    def notify_all(self) -> None:
        """See `WaitPoint`."""
        self.notify(len(self._waiting))


class VirtualThreads:
    """`duetick.core.threads.Threads`: each thread is a task of the tick's process."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    @contextmanager
    def open_threads(self, most: int) -> Iterator[Callable[[Work], object]]:
        """See `Threads`."""
        me, tasks = self._slots.current, list[Task]()

        def start(work: Work) -> None:
            assert len(tasks) < most, "a tick starts no more threads than it said"
            tasks.append(self._slots.start(me.process, f"{me.name}, thread {len(tasks)}", work))

        yield start
        for task in tasks:
            self._slots.join(task)

    def conditions(self) -> tuple[VirtualWaitPoint, VirtualWaitPoint]:
        """See `Threads`."""
        return VirtualWaitPoint(self._slots), VirtualWaitPoint(self._slots)
