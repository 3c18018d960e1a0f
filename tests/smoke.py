"""
What an installed equipoise must be able to do: `python tests/smoke.py core` or `all`, in an environment of its own.

It imports nothing of this repository, so that it tests what was installed. `core` also says of each extra that it is
not there; `all` uses each of them once.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import equipoise as eq

COMMAND = str(Path(sys.executable).parent / "equipoise")
STUDY = """
budget = 12
measure = "stdout"
store = "study.db"

[arms]
one = "echo 1"
two = "echo 2"
"""


def sample(arm: Any, seed: int) -> float:
    """Return one value of an arm."""
    return random.Random(seed).gauss(10, {"calm": 1, "rough": 4}[arm])


def output(*words: str) -> str:
    """Return what the command prints."""
    return subprocess.run([COMMAND, *words], check=True, capture_output=True, text=True).stdout


@contextmanager
def refused(*parts: str) -> Any:
    """Expect an error whose message has all parts."""
    said = "nothing"
    try:
        yield
    except Exception as error:
        said = str(error)
    assert all(part in said for part in parts), said


# ---- the core


def the_version_is_one() -> None:
    assert eq.__version__ == metadata.version("equipoise")
    assert output("--version") == f"equipoise {eq.__version__}\n"


def files_are_there() -> None:
    for name in ("py.typed", "server/poll.js", "report/static/style.css", "report/templates/study.html"):
        assert resources.files("equipoise").joinpath(name).is_file(), name


def a_study_asks_and_tells() -> None:
    study = eq.Study(["calm", "rough"], budget=100)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, sample(ticket.arm, ticket.id))
    assert study.result().counts["rough"] > study.result().counts["calm"]


def estimate_continues_from_a_store() -> None:
    for budget in (50, 100):
        assert eq.estimate(sample, arms=["calm", "rough"], budget=budget, store="estimate.db").samples == budget


def simulations_and_plans() -> None:
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()])
    assert eq.simulate(problem, budget=200, runs=200, seed=1).excess < 20
    assert eq.plan({"a": 16, "b": 9}, budget=100).samples == 100
    assert round(eq.theory.theorem3(Sigma_bar=5, n=10**9, K=2), 6) == 2.9e-05


def commands_run() -> None:
    assert "cardamom coffee" in output("demo", "--customers", "300")
    Path("study.toml").write_text(STUDY)
    assert json.loads(output("run", "study.toml", "--json"))["samples"] == 12
    assert json.loads(output("report", "study.db", "--json"))["samples"] == 12
    assert "two" in output("report", "study.db")
    assert "echo" in output("bench", "echo 1", "echo 2", "--runs", "3")


def what_is_missing_is_named() -> None:
    result = eq.estimate(sample, arms=["calm", "rough"], budget=50)
    with refused("Altair", "[plot]"):
        result.plot()
    with refused("psycopg", "[postgres]"):
        eq.open("postgresql://nobody@127.0.0.1:1/none", arms=["a"], budget=10)
    with refused("httpx", "[client]"):
        eq.connect("http://127.0.0.1:1", key="none")
    with refused("inspect", "[inspect]"):
        importlib.import_module("equipoise.integrations.inspect")
    with refused("scikit-learn", "[sklearn]"):
        importlib.import_module("equipoise.integrations.sklearn")
    with refused('engine="cuda"'):
        eq.simulate(eq.Problem([eq.Gaussian()]), budget=10, runs=10, engine="cuda")
    served = subprocess.run([COMMAND, "serve"], capture_output=True, text=True, check=False)
    assert served.returncode == 2, served
    assert "[serve]" in served.stderr, served


# ---- the extras


def plot_draws_and_reports() -> None:
    eq.estimate(sample, arms=["calm", "rough"], budget=50).plot().save("result.png")
    output("report", "study.db", "--html", "report.html", "--png", "report.png")
    for name in ("result.png", "report.png"):
        assert Path(name).read_bytes().startswith(b"\x89PNG"), name
    assert "<svg" in Path("report.html").read_text(encoding="utf-8")


def tables_are_read() -> None:
    import polars

    polars.DataFrame({"group": ["a", "b"] * 20, "value": range(40)}).write_parquet("table.parquet")
    Path("table.toml").write_text('budget = 20\ntable = "table.parquet"\nvalue = "value"\ngroup = "group"\n')
    assert json.loads(output("run", "table.toml", "--json"))["samples"] == 20


def postgres_is_tried() -> None:
    with refused("127.0.0.1"):
        eq.open("postgresql://nobody@127.0.0.1:1/none", arms=["a"], budget=10)


def a_service_serves() -> None:
    command = [COMMAND, "serve", "--db", "served.db", "--port", "0"]
    environment = {**os.environ, "EQUIPOISE_ADMIN_TOKEN": "smoke" * 8}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stderr is not None
            said = next((line for line in server.stderr if "serving " in line), "nothing")
            address = said.partition(" at ")[2].strip().rstrip("/")
            service = eq.connect(address, key="smoke" * 8)
            study = service.create("poll", arms=["a", "b"], budget=10, support="binary")
            study.tell(study.ask(), 1)
            assert study.result().samples == 1
            service.close()
        finally:
            server.terminate()


def a_cluster_samples() -> None:
    from distributed import Client

    with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
        assert eq.estimate(sample, arms=["calm", "rough"], budget=40, executor=client).samples == 40


def inspect_is_found() -> None:
    from equipoise.integrations.inspect import EarlyStopping

    assert EarlyStopping(group_by="subject", precision=0.03)


def scikit_learn_is_found() -> None:
    from sklearn.dummy import DummyClassifier

    from equipoise.integrations.sklearn import per_class_accuracy

    rows, labels = [[0]] * 40, ["a", "b"] * 20
    assert per_class_accuracy(DummyClassifier().fit(rows, labels), rows, labels).samples == 40


def a_gpu_simulates_or_there_is_none() -> None:
    try:
        found = eq.simulate(eq.Problem([eq.Gaussian(), eq.Rademacher()]), budget=100, runs=100, seed=1, engine="cuda")
    except ValueError as error:
        # The extra installs nothing on macOS.
        absent = "needs numba-cuda" if sys.platform == "darwin" else "found no "
        assert absent in str(error), error  # noqa: PT017
    else:
        assert found.excess < 50


CORE: list[Callable[[], None]] = [
    the_version_is_one,
    files_are_there,
    a_study_asks_and_tells,
    estimate_continues_from_a_store,
    simulations_and_plans,
    commands_run,
]
ABSENT: list[Callable[[], None]] = [what_is_missing_is_named]
EXTRAS: list[Callable[[], None]] = [
    plot_draws_and_reports,
    tables_are_read,
    postgres_is_tried,
    a_service_serves,
    a_cluster_samples,
    inspect_is_found,
    scikit_learn_is_found,
    a_gpu_simulates_or_there_is_none,
]


def main(kind: str) -> None:
    """Run the checks of a kind of installation, in a folder of their own."""
    checks = CORE + {"core": ABSENT, "all": EXTRAS}[kind]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for check in checks:
            check()
        os.chdir("/")
    print(f"smoke: {len(checks)} checks of {kind} pass, equipoise {eq.__version__}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main(sys.argv[1])
