"""Where batches run: local threads, any executor of the standard library, or Dask."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airlane import _batch, _native
from airlane._batch import Batch, Done, Failure, Point
from airlane.errors import AirlaneError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["AnyExecutor"]


class DaskClient(Protocol):
    """The part of a `distributed.Client` that is used, so that Dask need not be installed."""

    def get_executor(self, *, pure: bool, retries: int) -> Executor:
        """An executor whose batches run on the cluster."""

    def nthreads(self) -> dict[str, int]:
        """Number of threads of each worker."""


AnyExecutor: TypeAlias = int | str | Executor | DaskClient | None
"""None for one thread for each core, a number of threads, an executor of `concurrent.futures`, a
Dask client, `"dask://host:port"` for a scheduler, or `"dask"` for a cluster on this machine.
"""

# A batch for another process should take seconds, to be worth the transfer. Threads cost next to
# nothing, and after Ctrl-C they stop at the end of their batches.
_REMOTE_BATCH_S = 4.0
_THREAD_BATCH_S = 0.2
# Towards the end, batches shrink to this part, so that workers do not wait long for the last ones.
_SMALLEST_PART = 1 / 40


@dataclass(frozen=True, slots=True)
class Pool:
    """An executor with its properties."""

    executor: Executor
    workers: Callable[[], int]
    """How many batches it can run at once, at this moment."""
    batch_s: float
    """How long a batch should take."""


@contextmanager
def opened(executor: AnyExecutor) -> Iterator[Pool]:
    """The pool for an `executor` argument; closes only what it has opened itself."""
    if isinstance(executor, bool):
        raise TypeError(f"executor={executor}: a number of threads, or None for one on each core")
    if executor is None or isinstance(executor, int):
        threads = (os.cpu_count() or 1) if executor is None else executor
        if threads < 1:
            raise ValueError(f"executor={threads}: 1 thread or more; None for one on each core")
        own = ThreadPoolExecutor(threads, thread_name_prefix="airlane")
        try:
            yield Pool(own, lambda: threads, _THREAD_BATCH_S)
        finally:
            own.shutdown(cancel_futures=True)
    elif isinstance(executor, Executor):
        width = int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        yield Pool(executor, lambda: width, _REMOTE_BATCH_S)
    elif isinstance(executor, str):
        with _client(executor) as client:
            yield _dask(client)
    elif hasattr(executor, "get_executor"):
        yield _dask(executor)
    else:
        raise TypeError(
            f"executor={executor!r}: use None, a number of threads, an executor of "
            'concurrent.futures, a client of Dask, "dask" or "dask://host:port"'
        )


@contextmanager
def _client(address: str) -> Iterator[Client]:
    scheme, given, place = address.partition("://")
    if scheme != "dask" or bool(given) != bool(place):
        raise ValueError(f'executor={address!r}: write "dask" or "dask://host:port"')
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise AirlaneError('Dask is not installed: pip install "airlane[dask]"') from error
    if place:
        try:
            client = Client(f"tcp://{place}")  # type: ignore[no-untyped-call]
        except OSError as error:
            raise AirlaneError(f"executor={address!r}: no scheduler answers: {error}") from error
        with client:
            yield client
    else:
        cluster = LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0")  # type: ignore[no-untyped-call]
        with cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
            yield client


def _dask(client: DaskClient) -> Pool:
    # A batch is pure, so one that was lost with its worker can simply run elsewhere.
    executor: Executor = client.get_executor(pure=False, retries=3)

    def workers() -> int:
        return sum(client.nthreads().values()) or 1

    return Pool(executor, workers, _REMOTE_BATCH_S)


def run_batches(
    pool: Pool, seed: int, jobs: deque[tuple[Point, int]], deliver: Callable[[Done], None]
) -> None:
    """Runs all jobs (point, run) and yields their results as they arrive.

    The first batches are single runs; their duration determines the size of the following ones.
    Towards the end batches shrink, so that all workers finish together.
    """
    pending: dict[Future[Done], Batch] = {}
    runs, took_s = 0, 0.0
    try:
        while jobs or pending:
            workers = pool.workers()
            while jobs and len(pending) < 2 * workers:
                size = 1
                if runs:
                    most = pool.batch_s * runs / max(took_s, 1e-6)
                    fair = max(len(jobs) / (2 * workers), most * _SMALLEST_PART)
                    size = max(1, int(min(most, fair)))
                batch = Batch(seed, _grouped(jobs, size))
                pending[_submitted(pool.executor, batch)] = batch
            ready, _ = wait(pending, return_when=FIRST_COMPLETED)
            # Failures come last, so that the other results available at this moment are kept.
            for future in sorted(ready, key=_failed):
                done = _done(future, pending.pop(future))
                runs += sum(len(part.runs) for part in done.results)
                took_s += done.took_s
                deliver(done)
    finally:
        for future in pending:
            future.cancel()


def _submitted(executor: Executor, batch: Batch) -> Future[Done]:
    """The future of a batch; a failed one if the executor has lost its workers."""
    try:
        return executor.submit(_batch.simulate, batch)
    except BrokenExecutor as error:
        future: Future[Done] = Future()
        future.set_exception(error)
        return future


def _failed(future: Future[Done]) -> bool:
    """Whether a finished batch ends the sweep."""
    if future.cancelled() or future.exception() is not None:
        return True
    return future.result().failure is not None


def _done(future: Future[Done], batch: Batch) -> Done:
    """The outcome of a batch, even if nothing came back from it."""
    try:
        return future.result()
    except Exception as error:
        point, runs = batch.work[0]
        count = sum(len(runs) for _, runs in batch.work)
        reason = f"nothing came back of it and {count - 1} more runs: {error!r}"
        return Done(_native.MODEL, 0.0, [], Failure(point.hash, runs[0], reason))


def _grouped(jobs: deque[tuple[Point, int]], size: int) -> list[tuple[Point, list[int]]]:
    """Takes `size` jobs, grouped by point."""
    work: dict[str, tuple[Point, list[int]]] = {}
    for _ in range(min(size, len(jobs))):
        point, run = jobs.popleft()
        work.setdefault(point.hash, (point, []))[1].append(run)
    return list(work.values())
