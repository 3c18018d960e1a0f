"""Simulations on a Dask cluster: the same bits as on one machine, also when workers die."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Client

import equipoise as eq
from equipoise.simulation import Simulation
from tests.cluster import local_cluster

# Sockets that a killed worker leaves behind are closed by the garbage collector, which says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PROBLEM = eq.Problem([eq.Gaussian(0, 4), eq.Exponential(1)])


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    workers: int = getattr(request, "param", 2)
    with local_cluster(workers) as client:
        yield client


def numbers(sim: Simulation) -> tuple[Any, ...]:
    return (sim.to_dict(), sim.batches.tolist(), sim.sums.m2.tolist())


def test_the_same_bits(client: Client) -> None:
    """Several strategies and budgets, and a number of runs that fills no block."""
    given: dict[str, Any] = {"strategies": ["auto", "ch-as"], "budgets": [40, 120], "runs": 5000, "seed": 7}
    told: list[tuple[int, int]] = []
    there = eq.simulate_budgets(PROBLEM, **given, engine=client, progress=lambda *now: told.append(now))
    here = eq.simulate_budgets(PROBLEM, **given)
    assert [numbers(sim) for sim in there] == [numbers(sim) for sim in here]
    assert told[-1] == (15_000, 15_000)


@pytest.mark.parametrize("client", [1, 2], indirect=True)
def test_a_killed_worker_changes_nothing(client: Client) -> None:
    """Killed while it works, three runs in ten done; with one worker, all that was on the cluster is lost with it."""
    runs = 60 * 1024
    killed = threading.Event()

    def kill(done: int, total: int) -> None:
        if done > 0.3 * total and not killed.is_set():
            killed.set()
            info = client.scheduler_info(n_workers=-1)["workers"]
            pids = client.run(os.getpid, workers=[next(iter(info))])
            os.kill(next(iter(pids.values())), signal.SIGKILL)

    given: dict[str, Any] = {"strategy": "auto", "budget": 200, "runs": runs, "seed": 3}
    there = eq.simulate(PROBLEM, **given, engine=client, progress=kill)
    assert killed.is_set()
    assert numbers(there) == numbers(eq.simulate(PROBLEM, **given))


def test_a_closed_client_is_refused_in_one_sentence(client: Client) -> None:
    client.close()
    with pytest.raises(ValueError, match=r"^engine must be a Dask client that is running, got .*, which is closed$"):
        eq.simulate(PROBLEM, "uniform", 100, runs=10, engine=client)
