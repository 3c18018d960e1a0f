"""
Where samples are taken: in threads, on an event loop, an executor or a Dask cluster.

All of them take chunks of calls and return futures of `concurrent.futures`, so that one loop drives any of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, Protocol

from equipoise.base.errors import InvalidInput, SamplerFailed
from equipoise.base.inputs import integer, shown
from equipoise.run.samplers import Call, Outcome, Samplers, check_local, perform_async, perform_for

Answer = Future[list[Outcome]]

# How many samples of async functions are in flight by default.
AWAITED = 16


class Workers(Protocol):
    """The interface of whatever performs calls."""

    width: int  # how many chunks run at the same time
    chunks: bool  # whether several short samples are sent together

    def submit(self, calls: Sequence[Call]) -> Answer: ...
    def started(self, answer: Answer) -> bool: ...
    def give_up(self, answer: Answer) -> None: ...
    def came_back(self) -> None: ...
    def close(self) -> None: ...


def count_of(executor: Any) -> int | None:
    """Return the number of threads if `executor` is one, else None."""
    return integer("executor", executor, least=1) if hasattr(executor, "__index__") else None


def workers_for(executor: Any, samplers: Samplers, study: str = "") -> Workers:
    """Return the workers that `executor` asks for, for a study of this identity, if it has a log."""
    number = count_of(executor)
    if samplers.awaited:
        if executor is not None and number is None:
            raise TypeError(f"executor must be a number of samples in flight for async samplers, got {shown(executor)}")
        return EventLoop(number or AWAITED, study)
    if executor is None or number is not None:
        return Threads(number or 1, study)
    check_local(samplers)
    if hasattr(executor, "get_executor") and hasattr(executor, "nthreads"):
        if getattr(executor, "status", "") != "running":
            raise InvalidInput(f"the Dask client must be running, got {shown(executor)}, which is closed")
        width = sum(executor.nthreads().values())
        return ExecutorWorkers(executor.get_executor(pure=False), max(width, 1), study)
    if not hasattr(executor, "submit"):
        raise TypeError(
            "executor must be a number of threads, an executor of concurrent.futures or a Dask client, "
            f"got {shown(executor)}"
        )
    return ExecutorWorkers(executor, getattr(executor, "_max_workers", None) or os.cpu_count() or 1, study)


class Threads:
    """
    Threads that let the process end even if one of them hangs, unlike those of `ThreadPoolExecutor`.

    A thread is started when there is work and none is free. One that is given up no longer counts; if its call returns
    after all, the thread ends.
    """

    chunks = True

    def __init__(self, width: int, study: str = "") -> None:
        self.width, self._study = width, study
        self._work: queue.SimpleQueue[tuple[Answer, Sequence[Call]] | None] = queue.SimpleQueue()
        self._given_up: set[Answer] = set()
        self._lock = threading.Lock()
        self._threads = self._queued = self._busy = 0

    def _start_if_needed(self) -> None:
        """Start a thread if work is queued that no thread is free for; the lock is held."""
        if self._queued <= self._threads - self._busy or self._threads >= self.width:
            return
        try:
            threading.Thread(target=self._run, daemon=True, name="equipoise-sampler").start()
        except RuntimeError as error:
            raise RuntimeError(f"thread {self._threads + 1:,} of {self.width:,}: {error}") from None
        self._threads += 1

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            answer, calls = work
            with self._lock:
                self._queued -= 1
                self._busy += 1
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(perform_for(self._study, calls))
                except BaseException as error:  # a sampler may raise SystemExit
                    answer.set_exception(error)
            with self._lock:
                if answer in self._given_up:
                    self._given_up.discard(answer)
                    return
                self._busy -= 1

    def submit(self, calls: Sequence[Call]) -> Answer:
        answer: Answer = Future()
        with self._lock:
            self._queued += 1
            try:
                self._start_if_needed()
            except RuntimeError:
                self._queued -= 1
                raise
        self._work.put((answer, calls))
        return answer

    def started(self, answer: Answer) -> bool:
        return answer.running()

    def give_up(self, answer: Answer) -> None:
        with self._lock:
            if not answer.done():
                self._given_up.add(answer)
                self._threads -= 1
                self._busy -= 1
                self._start_if_needed()

    def came_back(self) -> None: ...

    def close(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)


class EventLoop:
    """An event loop in a thread of its own, because the caller may run in one already."""

    chunks = False

    def __init__(self, width: int, study: str = "") -> None:
        self.width, self._study = width, study
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="equipoise-loop")
        self._thread.start()

    def _run(self) -> None:
        # SystemExit and KeyboardInterrupt leave the loop before the future that waits for them has learnt of them.
        while not self._closed:
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def _stop(self) -> None:
        self._closed = True
        self._loop.stop()

    def submit(self, calls: Sequence[Call]) -> Answer:
        return asyncio.run_coroutine_threadsafe(perform_async(self._study, calls), self._loop)

    def started(self, answer: Answer) -> bool:
        return True

    def give_up(self, answer: Answer) -> None:
        answer.cancel()

    def came_back(self) -> None: ...

    def close(self) -> None:
        async def end() -> None:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        with contextlib.suppress(TimeoutError):  # a sampler that blocks the loop holds up its thread, not the caller
            asyncio.run_coroutine_threadsafe(end(), self._loop).result(timeout=1)
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join()
            self._loop.close()


class ExecutorWorkers:
    """The caller's executor, which the caller closes; a worker that hangs is lost."""

    chunks = True

    def __init__(self, executor: Executor, width: int, study: str = "") -> None:
        self._executor, self._study = executor, study
        self.width = width

    def submit(self, calls: Sequence[Call]) -> Answer:
        answer = self._executor.submit(perform_for, self._study, calls)
        if not hasattr(answer, "add_done_callback"):
            raise TypeError(f"executor must return futures from submit(), got {shown(answer)}")
        return answer

    def started(self, answer: Answer) -> bool:
        # Not every executor reports when a call starts.
        return answer.running() or not isinstance(self._executor, ThreadPoolExecutor | ProcessPoolExecutor)

    def give_up(self, answer: Answer) -> None:
        if answer.cancel():
            return
        self.width -= 1
        if self.width < 1:
            raise SamplerFailed("all workers of the executor hang, so that none is left to sample")

    def came_back(self) -> None:
        self.width += 1

    def close(self) -> None: ...
