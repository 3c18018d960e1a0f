"""Checks of what users pass in: each accepts what it should, and says in one sentence what is wrong otherwise."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise.base import inputs
from equipoise.base.inputs import MISSING, Names, by_arm, in_order, labelled, named, plain_name, shown, text_of, texts
from equipoise.numeric import moments
from equipoise.run.spec import load
from equipoise.timing import Bench, BenchOptions
from equipoise.timing.timer import ProcessTimer


def test_values_are_returned_as_plain_numbers() -> None:
    assert inputs.integer("n", np.int64(3), least=1) == 3
    assert type(inputs.integer("n", np.int64(3), least=1)) is int
    assert type(inputs.number("x", np.float32(0.5))) is float
    assert inputs.number("x", 7) == 7.0
    assert inputs.positive("seconds", 2) == 2.0
    assert inputs.probability("level", 0.9) == 0.9
    assert inputs.choice("engine", "cpu", ["cpu", "cuda"]) == "cpu"


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: inputs.integer("budget", -5, least=1), ValueError, "budget must be a positive integer, got -5"),
        (lambda: inputs.integer("budget", 2.5, least=1), TypeError, "budget must be a positive integer, got 2.5"),
        (lambda: inputs.integer("budget", True, least=1), TypeError, "budget must be a positive integer, got True"),
        (lambda: inputs.integer("seed", -1, least=0), ValueError, "seed must be a non-negative integer, got -1"),
        (lambda: inputs.integer("runs", 1, least=2000), ValueError, "runs must be an integer of at least 2,000, got 1"),
        (lambda: inputs.number("x", "0.5"), TypeError, "x must be a number, got '0.5'"),
        (lambda: inputs.number("x", 1j), TypeError, "x must be a number, got 1j"),
        (lambda: inputs.number("x", np.complex128(1)), TypeError, "x must be a number, got (1+0j)"),
        (lambda: inputs.number("x", 10**400), TypeError, f"x must be a number, got {'1' + 76 * '0'}..."),
        (lambda: inputs.number("value", MISSING), TypeError, "value is required"),
        (lambda: inputs.positive("lease", 0), ValueError, "lease must be a positive number, got 0"),
        (lambda: inputs.positive("lease", math.inf), ValueError, "lease must be a positive number, got inf"),
        (lambda: inputs.positive("lease", True), ValueError, "lease must be a positive number, got True"),
        (
            lambda: inputs.positive("budget", "9", "amount of money"),
            TypeError,
            "budget must be a positive amount of money, got '9'",
        ),
        (
            lambda: inputs.number_of_seconds("lease", math.inf),
            ValueError,
            "lease must be a positive number of seconds, got inf",
        ),
        (
            lambda: inputs.number_of_seconds("lease", 1e308),
            ValueError,
            "lease must be at most 1,000,000,000 seconds, got 1e+308",
        ),
        (lambda: inputs.probability("level", 95), ValueError, "level must be strictly between 0 and 1, got 95"),
        (lambda: inputs.probability("level", math.nan), ValueError, "level must be strictly between 0 and 1, got nan"),
        (
            lambda: inputs.choice("engine", "cdua", ["cpu", "cuda"]),
            ValueError,
            "engine must be one of 'cpu', 'cuda', got 'cdua'; did you mean 'cuda'?",
        ),
        (lambda: inputs.choice("engine", None, ["cpu"]), ValueError, "engine must be one of 'cpu', got None"),
    ],
)
def test_messages_name_what_is_wrong_and_what_is_expected(
    check: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        check()
    assert str(raised.value) == message


def test_no_call_takes_seconds_that_clocks_cannot_add_up(tmp_path: Path) -> None:
    def sample(arm: str) -> float:
        return 0.0

    (tmp_path / "spec.toml").write_text('budget = 9\nmeasure = "exit"\ntimeout = 1e308\n[arms]\na = "true"\n')
    with eq.open(tmp_path / "study.db", arms=["a", "b"]) as study:
        calls: dict[str, Callable[[], Any]] = {
            "lease of estimate": lambda: eq.estimate(sample, arms=["a", "b"], budget=10, lease=1e308),
            "max_seconds of estimate": lambda: eq.estimate(sample, arms=["a", "b"], budget=10, max_seconds=1e308),
            "lease of open": lambda: eq.open(tmp_path / "other.db", arms=["a", "b"], lease=1e308),
            "lease of an ask": lambda: study.ask(lease=1e308),
            "patience of connect": lambda: eq.connect("http://127.0.0.1:1", "key", patience=1e308),
            "timeout of a file": lambda: load(tmp_path / "spec.toml"),
            "max_seconds of bench": lambda: Bench(BenchOptions({"a": "true"}, max_seconds=1e308), ProcessTimer()),
        }
        for where, call in calls.items():
            name = where.split()[0]
            with pytest.raises(ValueError, match=f"\\b{name} must be at most 1,000,000,000 seconds, got 1e\\+308$"):
                call()
        assert study.spent == 0


def test_what_was_passed_is_shown_in_one_short_line() -> None:
    assert shown(np.float64(0.5)) == "0.5"
    assert shown(np.str_("a")) == "'a'"
    assert shown((np.int64(1), "b")) == "(1, 'b')"
    assert shown(np.eye(2)).count("\n") == 0
    assert len(shown("x" * 200)) == 80
    assert inputs.listed(range(7)) == "0, 1, 2, 3, 4, ..."
    assert inputs.listed([np.str_("a"), "b"]) == "'a', 'b'"
    assert inputs.did_you_mean("storre", ["store", "seed"]) == "; did you mean 'store'?"
    assert inputs.did_you_mean("x", ["store"]) == ""


def test_names_know_their_places() -> None:
    three: Any = np.int64(3)
    assert Names.of(three) == Names(range(3), None)
    assert Names.of([0, 1, 2]).place(np.int64(2)) == 2
    named = Names.of(np.array(["b", "a"]))
    assert named.names == ("b", "a")
    assert type(named.names[0]) is str
    assert named.place("a") == named.find(np.str_("a")) == 1
    assert len(named) == 2
    assert plain_name((np.int64(1), np.str_("x"))) == (1, "x")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Names.of("ab"),
            TypeError,
            "arms must be a list of names or the number of arms, got 'ab'; write ['ab']",
        ),
        (lambda: Names.of({"a"}), TypeError, "arms must be in an order, such as a list, got the set {'a'}"),
        (lambda: Names.of(2.5), TypeError, "arms must be a list of names or the number of arms, got 2.5"),  # type: ignore[arg-type]
        (lambda: Names.of(0), ValueError, "arms must be a positive integer, got 0"),
        (lambda: Names.of([]), ValueError, "arms must have at least one name, got an empty list"),
        (lambda: Names.of(["a", "b", "a"]), ValueError, "arm names must be unique, got 'a' twice"),
        # Two spellings of one text in Unicode, which nobody could tell apart.
        (lambda: Names.of(["é", "b", "e\u0301"]), ValueError, "arm names must be unique, got 'é' twice"),
        (lambda: Names.of(["K", "\u212a"]), ValueError, "arm names must be unique, got 'K' twice"),
        (
            lambda: Names.of([(1, [2])]),
            TypeError,
            "the name of an arm must be hashable, such as a string, got (1, [2])",
        ),
        (
            lambda: Names.of(["city", "country"]).find("contry"),
            ValueError,
            "there is no arm 'contry'; the arms are 'city', 'country'; did you mean 'country'?",
        ),
        (lambda: Names.of(3).find(3), ValueError, "there is no arm 3; the arms are 0, 1, 2"),
        (lambda: Names.of(3).find([1]), ValueError, "there is no arm [1]; the arms are 0, 1, 2"),  # type: ignore[arg-type]
    ],
)
def test_names_that_are_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        make()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("name", "got"),
    [
        ("a\x1b[31mb", r"'a\x1b[31mb'"),
        ("a\0b", r"'a\x00b'"),
        ("two\nlines", r"'two\nlines'"),
        ("a\x85b", r"'a\x85b'"),
        ("a\ud800b", r"'a\ud800b'"),
        ("a\u2028b", r"'a\u2028b'"),
        ("a\u202eb", r"'a\u202eb'"),
        ("a\u2066b", r"'a\u2066b'"),
        ("a\uffffb", r"'a\uffffb'"),
        (("x", ("a\x1bb", 1)), r"('x', ('a\x1bb', 1))"),
        (PurePosixPath("a\x1bb"), r"PurePosixPath('a\x1bb')"),
    ],
)
def test_names_that_a_terminal_would_not_show_are_refused(name: Any, got: str) -> None:
    """By a study, a plan and `estimate`, in a sentence that is fit for a terminal itself."""
    sentence = f"the name of an arm must not contain control characters, got {got}"
    doors: list[Callable[[], Any]] = [
        lambda: eq.Study(["fine", name]),
        lambda: eq.plan({"fine": 1.0, name: 2.0}, 100),
        lambda: eq.estimate({"fine": [1.0], name: [2.0]}, 100),
        lambda: eq.estimate(lambda arm: 1.0, 100, arms=["fine", name]),
    ]
    for door in doors:
        with pytest.raises(ValueError, match="control") as raised:
            door()
        assert str(raised.value) == sentence


def test_names_have_a_greatest_length() -> None:
    longest: list[Any] = ["x" * 200, ("x" * 94, "y" * 94, 1)]
    assert len(str(longest[1])) == 199
    assert eq.Study(longest).arms == tuple(longest)
    too_long: list[Any] = ["x" * 10_000, ("x" * 94, "y" * 96, 1), ("x" * 100, ("y" * 100,))]
    for name in too_long:
        with pytest.raises(ValueError, match=r"must have at most 200 characters, got .*\.\.\., which has [0-9,]+$"):
            eq.Study(["fine", name])


@pytest.mark.parametrize("name", [range(3), range(10**18), ("a", range(10**18)), ("a", ("b", range(2)))])
def test_a_range_is_not_a_name(name: Any) -> None:
    """JSON and tables hold ranges for sequences of names, and would list them."""
    with pytest.raises(TypeError, match=r"must not be a range, got .*; arms=range\(...\) names arms by its numbers"):
        Names.of([name, "b"])
    assert list(Names.of(range(2, 4)).names) == [2, 3]
    assert len(Names.of(["range(3)", ("a", "range(3)")])) == 2


@pytest.mark.parametrize("digits", [200, 400, 5000])
def test_numbers_of_many_digits(digits: int) -> None:
    """Python writes no integers of more than 4,300, so that a message about one must not try to."""
    large = 10**digits
    with pytest.raises(ValueError, match="the name of an arm must have at most 200 characters, got "):
        Names.of([large, "b"])
    with pytest.raises(ValueError, match="n must be at most 9, got "):
        inputs.integer("n", large, least=0, most=9)
    with pytest.raises(ValueError, match="n must be a non-negative integer, got "):
        inputs.integer("n", -large, least=0)
    assert len(shown([large])) <= 80


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        (" -2.5e-3\n", -0.0025),
        ("+.5", 0.5),
        ("3.", 3),
        ("1E9", 1e9),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
    ],
)
def test_numbers_in_texts(text: str, value: float) -> None:
    assert inputs.number_in(text) == value == float(text)
    assert math.isnan(inputs.number_in("NaN"))
    assert inputs.integer_in(" +12 ") == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1_000",
        "\uff11",
        "\u0661",
        "1e1_0",
        "0x10",
        "1,000",
        "1 000",
        ".",
        "e5",
        "\u00b2",
        "\u017fnf",
        "9" * 5000 + "x",
    ],
)
def test_what_only_resembles_a_number(text: str) -> None:
    for read in (inputs.number_in, inputs.integer_in):
        with pytest.raises(ValueError, match="must be written in the digits 0 to 9, got "):
            read(text)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("a\0b", "not contain control characters"),
        ("\ud800", "control"),
        ("x" * 201, "at most 200 characters, got"),
    ],
)
def test_names_of_studies(name: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"the name of a study must .*{wrong}"):
        eq.open(f"{tmp_path}/x.db#{name}", arms=["a"], budget=4)
    assert not list(tmp_path.iterdir())


def test_other_names_are_names() -> None:
    """Letters of every script, emoji made of several, backslashes, markup; numbers, dates, None and tuples."""
    names = [
        "naïve é",
        "日本語",
        "עברית",
        "العربية",
        "👩‍👩‍👧",
        "🇪🇺",
        r"C:\x1b",
        "<script>",
        "[red]",
        "a b",
        0.5,
        -3,
        None,
    ]
    names += [("é", 1), (r"C:\x1b", 2), date(2026, 1, 1), b"\x1b"]
    assert eq.Study(names).arms == tuple(names)


def test_tuples_read_as_their_parts() -> None:
    assert [text_of(name) for name in (("big", "law"), ("x", (1, None)), ("x",), (), 7)] == [
        "big/law",
        "x/1/None",
        "x",
        "()",
        "7",
    ]
    assert [named(name) for name in (("big", "law"), ("big one", "law"), (1, 2))] == [
        "big/law",
        "'big one/law'",
        "'1/2'",
    ]
    assert texts([("a", "b"), "c", 1]) == ["a/b", "c", "1"]
    for same in ([1, "1"], [("a", "b"), "a/b"]):
        assert texts(same) == list(map(repr, same))


def test_texts_of_users_cannot_control_a_terminal() -> None:
    class Loud:
        def __repr__(self) -> str:
            return "\x1b[2JLoud\n\u202e()"

    assert shown(Loud()) == r"\x1b[2JLoud \u202e()"
    assert inputs.printable("é\x1b\t\x7f\ud800日\u2029") == r"é\x1b\t\x7f\ud800日\u2029"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("postgresql://u:secret@host:5432/db", "postgresql://u:***@host:5432/db"),
        ("saved in postgres://u:secret@host/db; go on", "saved in postgres://u:***@host/db; go on"),
        ("got 'mysql://u:se@c:r/et@host/db#x'", "got 'mysql://u:***@host/db#x'"),
        ("postgresql://:secret@host", "postgresql://:***@host"),
        ("postgresql://h/db?user=u&password=secret&x=1", "postgresql://h/db?user=u&password=***&x=1"),
        ("host=h PASSWORD = 'sec ret' user=u", "host=h PASSWORD = *** user=u"),
        ("host=h password=secret", "host=h password=***"),
        ('invalid percent-encoded token: "sec%ret"', 'invalid percent-encoded token: "***"'),
        ('unexpected spaces found in "sec ret", use', 'unexpected spaces found in "***", use'),
        ("postgresql://u@host:5432/db", "postgresql://u@host:5432/db"),
        ("http://host:80/a and b@c", "http://host:80/a and b@c"),
        ('password authentication failed for user "u"', 'password authentication failed for user "u"'),
    ],
)
def test_passwords_are_not_shown(text: str, cleaned: str) -> None:
    assert inputs.without_password(text) == cleaned


# ---- values by arm


def test_what_has_labels_is_aligned_by_them() -> None:
    swapped: list[Any] = [{"country": 2, "city": 8}, pd.Series({"country": 2, "city": 8})]
    for given in swapped:
        assert by_arm("shares", given, ["city", "country"]) == [8, 2]
    pairs = pd.Series([2, 8], index=pd.MultiIndex.from_tuples([("b", 1), ("a", 0)]))
    assert by_arm("costs", pairs, [("a", 0), ("b", 1)]) == [8, 2]
    assert by_arm("costs", pd.Series([1, 2, 3], index=[2, 0, 1]), range(3)) == [2, 3, 1]
    assert labelled(pd.Series([1, 2], index=np.array([7, 8]))) == {7: 1, 8: 2}


def test_what_has_no_labels_is_taken_in_the_arms_order() -> None:
    without: list[Any] = [
        [8, 2],
        (8, 2),
        np.array([8, 2]),
        pl.Series([8, 2]),
        pl.Series("country", [8, 2]),
        iter([8, 2]),
        {"x": 8, "y": 2}.values(),
        pd.Series([8, 2], index=["x", "y"]).to_numpy(),
    ]
    for given in without:
        assert labelled(given) is None
        assert by_arm("costs", given, ["city", "country"]) == [8, 2]


ORDER = "; .to_numpy() passes the values in the arms' order"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"a": 1}, ValueError, "must have one value for each arm, got none for 'b'"),
        (
            {"a": 1, "b": 1, "c": 1},
            ValueError,
            "must have one value for each arm, got one for 'c', which is not an arm",
        ),
        (pd.Series([1, 2]), ValueError, f"must have one value for each arm, got one for 0, which is not an arm{ORDER}"),
        (
            pd.Series({"a": 1}),
            ValueError,
            f"must have one value for each arm, got none for 'b'{ORDER}",
        ),
        ([1], ValueError, "must have one value for each of the 2 arms, got 1"),
    ],
)
def test_labels_that_are_not_the_arms_are_refused(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        by_arm("costs", given, ["a", "b"])
    assert str(raised.value) == f"costs {message}"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (3, "3"),
        ("ab", "'ab'"),
        (np.array(3.0), "array(3.)"),
        ({1.0}, "the set {1.0}, which has no order"),
        (np.eye(2), "a table of 2 dimensions"),
        (pd.DataFrame({"a": [1], "b": [2]}), "a table of 2 dimensions"),
        (pl.DataFrame({"a": [1], "b": [2]}), "a table of 2 dimensions"),
    ],
)
def test_what_cannot_be_aligned_is_refused(given: Any, wrong: str) -> None:
    sentence = f"costs must have one value for each arm, by name or in the arms' order, got {wrong}"
    with pytest.raises(TypeError) as raised:
        by_arm("costs", given, ["a", "b"])
    assert str(raised.value) == sentence
    with pytest.raises(TypeError) as raised:
        in_order("costs", given)
    assert str(raised.value) == sentence


def test_a_label_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="arm labels must be unique, got 'a' twice"):
        by_arm("costs", pd.Series([1, 2, 3], index=["a", "b", "a"]), ["a", "b"])


CITY = ["city", "country"]
SWAPPED = {"country": 0.2, "city": 0.8}
SERIES = pd.Series(SWAPPED)
IN_ORDER = pl.Series([0.8, 0.2])


def result_of(study: eq.Study) -> eq.Result:
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, 10.0 * (ticket.arm == "city") + ticket.id % 5)
    return study.result()


@pytest.mark.parametrize("given", [SWAPPED, SERIES, IN_ORDER, [0.8, 0.2]], ids=["dict", "pandas", "polars", "list"])
def test_every_argument_by_arm_is_aligned_by_label(given: Any) -> None:
    """Stratified, weights and costs of a study; the same and the limits of a plan; the shares of a result."""
    study = eq.Study(CITY, objective=eq.Stratified(given))
    assert study.objective.shares == (0.8, 0.2)
    assert eq.Study(CITY, weights=given).objective.weights == (0.8, 0.2)
    assert eq.Study(CITY, costs=given).objective.costs == (0.8, 0.2)
    later = eq.Study(CITY)
    later.set_weights(given)
    assert later.objective.weights == (0.8, 0.2)
    known = result_of(eq.Study(CITY, budget=40))
    assert known.combine(given) == known.combine([0.8, 0.2])
    assert known.combine(given).value > 8
    variances = {"city": 4.0, "country": 1.0}
    assert eq.plan(variances, 400, weights=given).counts == eq.plan(variances, 400, weights=[0.8, 0.2]).counts
    assert eq.plan(variances, 400, costs=given).counts == eq.plan(variances, 400, costs=[0.8, 0.2]).counts
    aim = eq.plan(variances, 400, objective=eq.Stratified(given))
    assert aim.counts == eq.plan(variances, 400, objective=eq.Stratified([0.8, 0.2])).counts
    assert eq.plan(variances, precision=given).precision == (0.8, 0.2)


@pytest.mark.parametrize("name", ["floors", "caps", "populations"])
def test_limits_of_a_plan_are_aligned_by_label(name: str) -> None:
    variances = {"city": 4.0, "country": 1.0}
    swapped = {"country": 30, "city": 70}
    ways: list[Any] = [swapped, pd.Series(swapped), pl.Series([70, 30]), [70, 30], np.array([70, 30])]
    for given in ways:
        limits = getattr(eq.plan(variances, 100, **{name: given}).terms, name)
        assert limits.tolist() == [70, 30]
    some = eq.plan(variances, 100, **{name: pd.Series({"country": 30})})
    assert getattr(some.terms, name)[1] == 30
    with pytest.raises(ValueError, match=rf"{name} must have .* got one for 0, which is not an arm; \.to_numpy"):
        eq.plan(variances, 100, **{name: pd.Series([70, 30])})


def test_the_variances_of_a_plan_name_its_arms() -> None:
    assert eq.plan(pd.Series({"calm": 1, "rough": 4}), 1000).counts == {"calm": 200, "rough": 800}
    assert eq.plan(pl.Series([1, 4]), 1000).counts == {0: 200, 1: 800}
    with pytest.raises(ValueError, match="got 'a' twice"):
        eq.plan(pd.Series([1, 4], index=["a", "a"]), 1000)
    with pytest.raises(TypeError, match=r"variances must have one value for each arm.* a table of 2 dimensions"):
        eq.plan(pd.DataFrame({"a": [1], "b": [4]}), 1000)


def test_the_optional_parts_are_installed_from_a_checkout_or_a_wheel() -> None:
    hint = "to install it: pip install '.[plot]' in a checkout, or with the path of a wheel instead of the dot"
    assert inputs.install_hint("plot") == hint


# ---- masked arrays

GAPS = np.ma.masked_array([1.0, 2.0, 99.0, 4.0], [False, False, True, False])
GAP: Any = np.ma.masked_array(5, True)  # float() and np.asarray give the 5 below the mask, or NaN


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: eq.Study(GAP), "arms must be"),
        (lambda: eq.Study(2, budget=GAP), "budget must be a positive integer, got masked_array("),
        (lambda: eq.Study(4, weights=GAPS), "weights[2] must be a number, got masked"),
        (lambda: eq.Study(4, costs=GAPS), "costs[2] must be a number, got masked"),
        (lambda: eq.Stratified(GAPS), "a share must be a number, got masked"),
        (lambda: eq.plan(GAPS, 100), "variances[2] must be a number, got masked"),
        (
            lambda: eq.plan([1, 1, 1, 1], 100, floors=GAPS.astype(int)),
            "floors[2] must be a positive integer, got masked",
        ),
        (lambda: eq.Empirical(GAPS), "values of Empirical must not be masked, got 1 masked"),
        (lambda: moments.of(GAPS), "samples must not be masked, got 1 masked"),
        (lambda: eq.estimate({"a": GAPS}, 9), "arm 'a' must have no masked samples, got 1 of 4"),
        (lambda: eq.estimate({"a": list(GAPS)}, 9), "arm 'a' must have no masked samples, got 1 of 4"),
        (lambda: eq.estimate({"a": iter(GAPS)}, 9), "a sample must be a number, got masked"),
        (lambda: eq.estimate({"a": lambda: GAP}, 9), "a sample must be a number, got masked_array("),
        (
            lambda: eq.estimate({"a": lambda size: np.ma.masked_array(np.ones(size), True)}, 9),
            "a sampler must return no masked values, got 1 of 1",
        ),
        (
            lambda: eq.estimate(lambda item: item, 9, populations={"a": GAPS}),
            "the population of arm 'a' must have no masked items, got 1 of 4",
        ),
    ],
)
def test_a_masked_value_is_not_a_value(use: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError, eq.EquipoiseError)) as raised:
        use()
    assert message in str(raised.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.ma.masked, GAP, GAPS[2], np.ma.masked_array([5.0], [True])])
def test_a_masked_answer_is_refused_and_changes_nothing(value: Any) -> None:
    study = eq.Study(["a", "b"])
    tickets = study.ask(3)
    before = study.ledger.fingerprint()
    calls: list[Callable[[], None]] = [
        lambda: study.tell(tickets[0], value),
        lambda: study.tell(arm="a", value=value),
        lambda: study.tell_many([(tickets[0], 1.0), (tickets[1], value)]),
        lambda: study.tell_moments("a", 3, value, 0.0),
        lambda: study.tell_moments("a", 3, 1.0, value),
        lambda: study.tell_moments("a", value, 1.0, 1.0),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"^(value|mean|m2|count) must be .*, got masked"):
            call()
        assert study.ledger.fingerprint() == before


def test_a_masked_array_without_masked_values_is_an_array() -> None:
    whole = np.ma.masked_array([1.0, 2.0, 3.0], [False, False, False])
    result = eq.estimate({"a": whole, "b": lambda size: np.ma.ones(size)}, 9)
    assert dict(result.means) == {"a": 2.0, "b": 1.0}
    assert eq.Study(3, weights=whole).objective.weights == (1.0, 2.0, 3.0)
    assert eq.Empirical(whole).mean == 2.0
    study = eq.Study(1)
    study.tell_many(zip(study.ask(3), whole, strict=True))
    assert study.result().means[0] == 2.0


def test_an_argument_that_was_not_given_can_be_read_in_a_signature() -> None:
    assert "ticket: 'Ticket' = <not given>" in str(inspect.signature(eq.Study.tell))
