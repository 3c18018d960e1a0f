"""A Dask cluster on this machine, for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dask
from distributed import Client, LocalCluster


@contextmanager
def local_cluster(workers: int = 2) -> Iterator[Client]:
    """A client of this many worker processes; a cluster that fails to start on a busy machine gets two more tries."""
    with ExitStack() as stack:
        stack.enter_context(
            dask.config.set({"distributed.comm.timeouts.connect": "120s", "distributed.comm.timeouts.tcp": "120s"})
        )
        for left in (2, 1, 0):
            try:
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # another process of the tests may have the usual port
                        silence_logs=50,
                    )
                )
                break
            except RuntimeError:
                if not left:
                    raise
        yield stack.enter_context(Client(cluster))
