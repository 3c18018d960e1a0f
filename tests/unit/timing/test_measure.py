"""A benchmark of commands whose times are decided by the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import check_names
from equipoise.result import Result
from equipoise.run.estimate import estimate
from equipoise.timing import Bench, BenchOptions, BenchStage, Run, margins, measure
from equipoise.timing.options import names_of
from tests.timers import Drawn, Heating, normal

COMMANDS = {"gzip": "true", "xz": "true"}
COMMANDS_AB = {"a": "true", "b": "true"}
TIMES = {"gzip": normal(0.02, 0.05), "xz": normal(0.074, 0.15)}


def test_it_runs_until_every_mean_is_known() -> None:
    found = Bench(BenchOptions(COMMANDS), Drawn(TIMES)).run()
    gzip, xz = found.commands
    assert found.reached is True
    for each in found.commands:
        assert each.margin <= 0.05 * each.mean == pytest.approx(each.target)
        assert each.deviation == pytest.approx(np.std(each.seconds, ddof=1))
    assert len(xz.runs) > len(gzip.runs) >= 20
    assert len(found.order) == len(xz.runs) + len(gzip.runs)
    assert found.overhead is None
    [ratio] = found.ratios
    assert (ratio.fast.name, ratio.slow.name) == ("gzip", "xz")
    assert ratio.times.low < 3.7 < ratio.times.high


def test_commands_are_interleaved() -> None:
    """
    In reverse order in every other round; once one command needs more runs, in any five in a row there are both.

    That is until one of them is known.
    """
    found = Bench(BenchOptions(COMMANDS), Drawn(TIMES)).run()
    last = max(i for i, k in enumerate(found.order) if k == 0)
    assert last > 40
    assert found.order[:40] == (0, 1, 1, 0) * 10
    assert all(len(set(found.order[i : i + 5])) == 2 for i in range(last - 4))


def test_short_commands_are_run_in_turn_in_blocks() -> None:
    """Commands of 1 and 2 ms: about six rounds a block."""
    timer = Drawn({"a": normal(0.001, 0.3), "b": normal(0.002, 0.3)})
    found = Bench(BenchOptions(COMMANDS_AB, runs=50), timer).run()
    assert [arm for arm, _ in timer.ran] == ["a", "b", "b", "a"] * 25
    assert found.order == (0, 1, 1, 0) * 25
    timer.ran.clear()
    found = Bench(BenchOptions(COMMANDS_AB, max_runs=100), timer).run()
    assert [arm for arm, _ in timer.ran[:40]] == ["a", "b", "b", "a"] * 10
    assert len(timer.ran) <= 200
    assert [len(each.runs) for each in found.commands] == [found.order.count(0), found.order.count(1)]


@pytest.mark.parametrize("seconds", [0.001, 1.0])
def test_a_failure_leaves_the_runs_before_it(seconds: float) -> None:
    class Failing(Drawn):
        def __call__(self, words: Sequence[str], arm: str) -> Run:
            run = super().__call__(words, arm)
            return run if len(self.ran) <= 17 else Run(1.0, code=1, said="exit code 1")

    bench = Bench(BenchOptions(COMMANDS_AB), Failing({arm: normal(seconds, 0.1) for arm in "ab"}))
    with pytest.raises(EquipoiseError, match=r"^'b' failed: exit code 1"):
        bench.run()
    found = bench.so_far()
    assert found is not None
    assert found.order == (0, 1, 1, 0) * 4 + (0,)
    assert found.stopped
    assert [each.interval for each in found.commands] == ["fixed-n"] * 2


def test_a_number_of_runs() -> None:
    found = Bench(BenchOptions(COMMANDS, runs=6), Drawn(TIMES)).run()
    assert found.order == (0, 1, 1, 0) * 3
    assert found.reached is True
    # Student's interval, as nothing was decided by looking; Bonferroni for two commands: t(5) at 97.5%.
    each = found.commands[0]
    assert each.margin == pytest.approx(3.1634 * each.deviation / math.sqrt(6), rel=1e-3)


def test_runs_are_limited() -> None:
    found = Bench(BenchOptions({"a": "true"}, precision="0.1%", max_runs=40), Drawn({"a": normal(1, 0.5)})).run()
    assert len(found.order) == 40
    assert found.reached is False


@pytest.mark.parametrize("runs", [None, 5])
def test_time_is_up(runs: int | None) -> None:
    """Runs of 3 s each by the clock: the third of them, of the second round, begins before 7 s are over."""
    timer = Drawn({"a": normal(3, 0.0), "b": normal(3, 0.0)})

    def clock() -> float:
        return 3.0 * len(timer.ran)

    for seconds, order in ((0.1, (0, 1)), (7, (0, 1, 1)), (1000, (0, 1, 1, 0) * 2 + (0, 1))):
        timer.ran.clear()
        found = Bench(BenchOptions(COMMANDS_AB, runs=runs, max_runs=5, max_seconds=seconds), timer, clock=clock).run()
        assert found.order == order
        assert found.out_of_time is (seconds < 1000)
        assert found.reached is (runs is not None and seconds == 1000)


def test_setup_prepare_warm_up_and_cleanup() -> None:
    timer, seen = Drawn(TIMES), list[tuple[str, int, int | None]]()

    def watch(stage: BenchStage) -> None:
        seen.append((stage.name, stage.done, stage.of))

    own = ["ready", "set"]
    Bench(
        BenchOptions(COMMANDS, runs=1, warmup=2, setup=["make"], prepare=own, cleanup=["clean"]), timer, watch=watch
    ).run()
    one = [("gzip", "ready"), ("gzip", "true"), ("xz", "set"), ("xz", "true")]
    assert timer.ran == [("", "make"), *one * 3, ("", "clean")]
    assert seen[:4] == [("warm up", i, 4) for i in range(4)]
    assert seen[-1] == ("measure", 2, 2)


def test_the_first_runs_follow_the_warm_up_before_the_study_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs where their number is given; else a block of commands of 1 ms, and a round of those of 1 s."""
    begun = list[int]()
    for options, seconds, runs in (({"runs": 3}, 1.0, 6), ({}, 0.001, 20), ({}, 1.0, 2)):
        timer = Drawn({arm: normal(seconds, 0.0) for arm in "ab"})

        def begin(*args: Any, timer: Drawn = timer, **kwargs: Any) -> Result:
            begun.append(len(timer.ran) - 4)
            return estimate(*args, **kwargs)

        monkeypatch.setattr(measure, "estimate", begin)
        Bench(BenchOptions(COMMANDS_AB, warmup=2, **options), timer).run()  # type: ignore[arg-type]
        assert begun[-1] == runs


def test_one_prepare_is_for_all() -> None:
    timer = Drawn(TIMES)
    Bench(BenchOptions(COMMANDS, runs=1, prepare=["sync"]), timer).run()
    assert timer.ran == [("gzip", "sync"), ("gzip", "true"), ("xz", "sync"), ("xz", "true")]


# ---- the shell


def test_the_shells_own_time_is_subtracted() -> None:
    timer = Drawn({"a": normal(0.05, 0.02), "b": normal(0.09, 0.02)}, other=0.01)
    found = Bench(BenchOptions({"a": "true | true", "b": "true"}, runs=30), timer).run()
    assert found.overhead is not None
    assert found.overhead.shell == "/bin/sh"
    assert found.overhead.seconds == pytest.approx(0.01)
    assert timer.ran[:53] == [("", "")] * 53
    assert [each.mean for each in found.commands] == pytest.approx([0.04, 0.08], rel=0.02)
    assert found.ratios[0].times.value == pytest.approx(2, rel=0.05)


def test_the_error_of_the_shells_time_is_counted() -> None:
    """A command that takes about as long as the shell is not known to a precision, however often it is run."""

    def bench(seconds: float) -> Bench:
        timer = Drawn({"a": normal(0.01 + seconds, 0.001), "": normal(0.01, 0.2)})
        return Bench(BenchOptions({"a": "true | true"}), timer)

    short, long = bench(0.0005).run(), bench(1.0).run()
    assert short.reached is False
    assert [each.name for each in short.too_short] == ["a"]
    assert short.commands[0].margin >= 2 * short.overhead.error > 0  # type: ignore[union-attr]
    assert long.reached is True
    assert not long.too_short


def test_the_shell_is_timed_until_it_is_known_well_enough() -> None:
    """
    Commands of 1 s need 50 runs of the shell, and one of 10 ms more of them.

    Of σ = 2 ms they need (2 * 2 / (0.3 * 5% * 10))² = 711, in blocks of 50. They follow the first runs of the command.
    """

    def timer(seconds: float) -> Drawn:
        return Drawn({"a": normal(0.01 + seconds, 0.01), "": normal(0.01, 0.2)})

    for seconds, least, most in ((1.0, 53, 53), (0.01, 656, 956)):
        drawn = timer(seconds)
        found = Bench(BenchOptions({"a": "true | true"}), drawn).run()
        assert found.reached
        arms = [arm for arm, _ in drawn.ran]
        assert arms[53:55] == ["a", ""]
        # One of them in each round besides.
        assert least <= arms.count("") - arms.count("a") <= most
        assert arms[-4:] == ["a", "", "", "a"] or arms[-4:] == ["", "a", "a", ""]
        # With the error of the shell's own time.
        assert found.commands[0].margin <= 0.05 * found.commands[0].mean


def test_what_the_shell_hides_is_not_run_to_the_limit() -> None:
    """Commands that take no time besides the shell's, one of which is found to take less; and the other is 1 s."""
    timer = Drawn({"no": normal(0.01, 0.2), "": normal(0.0101, 0.2), "yes": normal(1.0, 0.1)})
    found = Bench(BenchOptions({"no": "true | true", "yes": "true"}), timer).run()
    no, yes = found.commands
    assert 20 <= len(no.runs) <= 22
    assert (no.reached, yes.reached) == (False, True)
    assert no.interval == "fixed-n"
    assert no.mean >= 0
    assert found.too_short == (no,)
    arms = [arm for arm, _ in timer.ran]
    # More would not help: 3 and 50, 3 and 150, and one in each round.
    assert arms.count("") <= 206 + arms.count("no") + arms.count("yes")


def test_a_shell_that_drifts_is_timed_while_the_commands_are() -> None:
    """The shell takes 10 ms while only it is run, and then 20 ms, of which a command of 30 ms takes 10."""

    class Drifting(Drawn):
        def __call__(self, words: Sequence[str], arm: str) -> Run:
            run = super().__call__(words, arm)
            return Run(run.seconds + 0.01 * (len(self.ran) > 53))

    timer = Drifting({"a": normal(0.02, 0.0), "": normal(0.01, 0.0)})
    found = Bench(BenchOptions({"a": "true | true"}, runs=60), timer).run()
    assert found.overhead is not None
    assert found.overhead.seconds == pytest.approx(0.02)
    assert found.commands[0].mean == pytest.approx(0.01)


# ---- which interval it is


def test_where_nobody_looked_it_is_students() -> None:
    """At the end of a time limit or of the runs: simultaneous over commands, from two runs on."""
    timer = Drawn({arm: normal(1.0, 0.1) for arm in "ab"})

    def clock() -> float:
        return float(len(timer.ran))

    for options in ({"max_seconds": 4.0}, {"max_runs": 2}, {"runs": 9, "max_seconds": 4.0}):
        timer.ran.clear()
        for each in Bench(BenchOptions(COMMANDS_AB, **options), timer, clock=clock).run().commands:
            assert (len(each.runs), each.interval) == (2, "fixed-n")
            # t(1) at 97.5%
            assert each.margin == pytest.approx(25.4517 * each.deviation / math.sqrt(2), rel=1e-4)


def test_a_least_number_of_runs() -> None:
    """Where the precision is reached before: the interval of as many runs as were asked for."""
    found = Bench(BenchOptions(COMMANDS_AB, min_runs=60), Drawn({arm: normal(1.0, 0.02) for arm in "ab"})).run()
    assert found.order == (0, 1, 1, 0) * 30
    assert [each.interval for each in found.commands] == ["fixed-n"] * 2
    assert found.reached


# ---- failures


def failing(code: int) -> Drawn:
    class Failing(Drawn):
        def __call__(self, words: Sequence[str], arm: str) -> Run:
            run = super().__call__(words, arm)
            return (
                Run(run.seconds, code=code, said=f"exit code {code}; its stderr ends with: oh")
                if words == ["false"]
                else run
            )

    return Failing({"a": normal(1, 0.01), "b": normal(1, 0.01)})


def test_a_command_that_fails_ends_it() -> None:
    timer = failing(7)
    bench = Bench(BenchOptions({"a": "true", "b": "false"}, cleanup=["clean"]), timer)
    with pytest.raises(
        EquipoiseError, match=r"^'b' failed: exit code 7; its stderr ends with: oh \(-i ignores"
    ) as error:
        bench.run()
    assert "sample" not in str(error.value)
    assert bench.so_far() is None
    assert timer.ran[-1] == ("", "clean")
    with pytest.raises(EquipoiseError, match=r"^'b' failed: exit code 7"):
        Bench(BenchOptions({"b": "false"}, warmup=1), failing(7)).run()
    with pytest.raises(EquipoiseError, match=r"^the setup command 'x' failed: exit code 7"):
        Bench(BenchOptions({"a": "true"}, setup=["x"]), Aside(7)).run()
    with pytest.raises(EquipoiseError, match=r"^the prepare command 'x' failed: exit code 7"):
        Bench(BenchOptions({"a": "true"}, prepare=["x"]), Aside(7)).run()


@pytest.mark.parametrize(
    ("commands", "options", "error", "sentence"),
    [
        ({"a": "true"}, {}, EquipoiseError, "^the cleanup command 'x 1' failed: exit code 7$"),
        ({"a": "false"}, {}, EquipoiseError, "^'a' failed: exit code 7"),
        ({"a": "true"}, {"setup": ["make"]}, EquipoiseError, "^the setup command 'make' failed"),
        ({"a": "true"}, {"prepare": ["stop"]}, KeyboardInterrupt, "^$"),
    ],
)
def test_a_cleanup_that_fails_hides_nothing(
    commands: dict[str, str], options: dict[str, Any], error: type[BaseException], sentence: str
) -> None:
    bench = Bench(BenchOptions(commands, runs=2, cleanup=["x 1", "x 2"], **options), Aside(7))
    with pytest.raises(error, match=sentence):
        bench.run()
    assert bench.unclean == [f"the cleanup command 'x {i}' failed: exit code 7" for i in (1, 2)]


class Aside:
    """A timer of commands that succeed, besides whatever a shell is asked to do; Ctrl-C comes where that is to stop."""

    def __init__(self, code: int) -> None:
        self._code = code

    def __call__(self, words: Sequence[str], arm: str) -> Run:
        if words[-1] == "stop":
            raise KeyboardInterrupt
        return Run(1.0) if words == ["true"] else Run(1.0, code=self._code, said=f"exit code {self._code}")


def test_failures_may_be_ignored() -> None:
    found = Bench(BenchOptions({"a": "true", "b": "false"}, runs=3, ignore_failure=True), failing(7)).run()
    assert [each.failures for each in found.commands] == [0, 3]


def test_an_interrupt_leaves_what_is_known() -> None:
    class Interrupted(Drawn):
        def __call__(self, words: Sequence[str], arm: str) -> Run:
            if len(self.ran) == 50:
                raise KeyboardInterrupt
            return super().__call__(words, arm)

    # The first two runs take 0.1 s: time for 40 of each.
    bench = Bench(BenchOptions(COMMANDS, precision="0.1%", max_seconds=4.0), Interrupted(TIMES), clock=lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    found = bench.so_far()
    assert found is not None
    assert len(found.order) == 50
    assert (found.reached, found.stopped) == (False, True)
    # It holds whenever somebody looks, and so is wider than Student's; but not as wide as one for 1,000 runs.
    each = found.commands[0]
    assert 0 < found.left[0] < math.inf
    student = margins.student(each.seconds, 0.025)
    assert each.interval == "anytime"
    assert student < each.margin < margins.anytime(each.seconds, 0.025, 1000)


def test_before_there_is_a_precision_to_look_at_an_interrupt_says_nothing_about_it() -> None:
    class Interrupted(Drawn):
        def __call__(self, words: Sequence[str], arm: str) -> Run:
            if len(self.ran) == 8:
                raise KeyboardInterrupt
            return super().__call__(words, arm)

    bench = Bench(BenchOptions(COMMANDS, precision="0.1%"), Interrupted(TIMES))
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    found = bench.so_far()
    assert found is not None
    assert [(len(each.runs), each.interval, math.isfinite(each.margin)) for each in found.commands] == [
        (4, "fixed-n", True)
    ] * 2


# ---- a machine that heats up


def test_a_machine_that_heats_up() -> None:
    """One after the other, the faster command seems slower if it comes last; in turn, it does not."""
    seconds, hot = {"slow": 0.105, "fast": 0.1}, 0.02
    one_by_one = Heating(seconds, hot)
    means = {arm: np.mean([one_by_one([], arm).seconds for _ in range(10)]) for arm in seconds}
    assert means["fast"] > 1.1 * means["slow"]
    for options in ({"runs": 10}, {"precision": "10%"}):
        found = Bench(BenchOptions({"slow": "true", "fast": "true"}, **options), Heating(seconds, hot)).run()
        assert found.drifts
        [ratio] = found.ratios
        assert (ratio.fast.name, ratio.slow.name) == ("fast", "slow")
        assert ratio.times.value == pytest.approx(1.05, abs=0.001)


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_a_steady_drift_does_not_bias_the_ratio(ratio: float) -> None:
    """
    Of 1,000 benchmarks of 10 runs, each run 2% longer than the last one, with a σ of 2%: the interval holds in 95%.

    The standard error of that share is 0.69%, and that of the mean of the ratios is found with them.
    """
    studies, held, values = 1000, 0, []
    for seed in range(studies):
        timer = Heating({"slow": ratio, "fast": 1.0}, 0.02, noise=0.02, seed=seed)
        [found] = Bench(BenchOptions({"slow": "true", "fast": "true"}, runs=10), timer).run().ratios
        times = found.times
        low, value, high = (
            (times.low, times.value, times.high)
            if found.slow.name == "slow"
            else (1 / times.high, 1 / times.value, 1 / times.low)
        )
        held += low <= ratio <= high
        values.append(value)
    assert abs(held / studies - 0.95) < 5 * math.sqrt(0.95 * 0.05 / studies)
    assert abs(np.mean(values) - ratio) < 5 * np.std(values, ddof=1) / math.sqrt(studies)


# ---- arguments


@pytest.mark.parametrize(
    ("commands", "options", "sentence"),
    [
        ({}, {}, "at least one command is needed, as in equipoise bench 'gzip -c data.bin'"),
        ({"a": " "}, {}, "a command must not be empty, got ' '"),
        ({"a": "echo \udcff"}, {}, r"a command and its name must be UTF-8, got 'echo \udcff'"),
        (COMMANDS, {"cleanup": ["echo \udcff"]}, r"a command and its name must be UTF-8, got 'echo \udcff'"),
        (COMMANDS, {"precision": "much"}, "precision must be a positive number"),
        (COMMANDS, {"runs": 0}, "runs must be a positive integer, got 0"),
        (COMMANDS, {"runs": 10**20}, "runs must be at most 1,000,000,000, got 100,000,000,000,000,000,000"),
        (COMMANDS, {"warmup": 10**10}, "warmup must be at most 1,000,000,000, got 10,000,000,000"),
        (COMMANDS, {"min_runs": 5, "max_runs": 4}, "min_runs must be at most max_runs, 4, got 5"),
        (COMMANDS, {"max_runs": 1}, "max_runs must be at least 2 with a precision, got 1"),
        (COMMANDS, {"max_seconds": -1}, "max_seconds must be a positive number of seconds, got -1"),
        (COMMANDS, {"warmup": -1}, "warmup must be"),
        (
            {**COMMANDS, "c": "true"},
            {"prepare": ["a", "b"]},
            "prepare must be given once or once for each of the 3 commands, got 2 times",
        ),
    ],
)
def test_what_is_refused_before_anything_is_run(
    commands: dict[str, str], options: dict[str, object], sentence: str
) -> None:
    timer = Drawn(TIMES)
    with pytest.raises(ValueError) as error:
        Bench(BenchOptions(commands, setup=["make"], **options), timer)  # type: ignore[arg-type]
    assert str(error.value).startswith(sentence)
    assert timer.ran == []


def test_names() -> None:
    assert names_of(["/bin/gzip -1 x", "xz x"], []) == {"gzip": "/bin/gzip -1 x", "xz": "xz x"}
    assert names_of(["gzip -1 x", "gzip -9 x"], []) == {"gzip -1 x": "gzip -1 x", "gzip -9 x": "gzip -9 x"}
    assert names_of(["a", "a"], ["one", "two"]) == {"one": "a", "two": "a"}
    scripts = ["echo 1\necho 2", "echo 1\necho 3", "echo " + 200 * "x", "echo " + 200 * "x" + "y"]
    names = [*names_of(scripts, [])]
    assert names[:2] == [r"echo 1\necho 2", r"echo 1\necho 3"]
    assert [(len(name), name[-6:]) for name in names[2:]] == [(200, "x… (3)"), (200, "x… (4)")]
    check_names(names)
    with pytest.raises(ValueError, match=r"^every command needs a name of its own, got 'a' twice; use --name$"):
        names_of(["a", "a"], [])
    with pytest.raises(ValueError, match=r"^name must be given once for each of the 2 commands, got 1 times$"):
        names_of(["a", "b"], ["x"])
