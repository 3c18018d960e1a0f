"""Commands with parameters in them."""

from __future__ import annotations

import pytest

from equipoise.timing import parameters


def test_a_scan_has_both_ends_and_exact_decimals() -> None:
    assert parameters.scan("1", "4") == ["1", "2", "3", "4"]
    assert parameters.scan("-0.1", "0.2", "0.1") == ["-0.1", "0.0", "0.1", "0.2"]
    assert parameters.scan("1", "4", "2") == ["1", "3"]
    assert parameters.scan("1e3", "2E+3", "1e3") == ["1000", "2000"]
    assert parameters.scan("0", "2e-7", "1e-7") == ["0.0000000", "0.0000001", "0.0000002"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("1", "x"), "MAX of a parameter must be a number, got 'x'"),
        (("nan", "2"), "MIN of a parameter must be a number, got 'nan'"),
        (("1", "2", "0"), "a parameter must be scanned from MIN up to MAX by a positive step, got 1 to 2 by 0"),
        (
            ("0", "1e999999"),
            "MAX of a parameter must have at most 14 digits before and after the point, got '1e999999'",
        ),
        (
            ("0", "1", "1e-999999"),
            "the step of a parameter must have at most 14 digits before and after the point, got '1e-999999'",
        ),
        (("2", "1"), "a parameter must be scanned from MIN up to MAX by a positive step, got 2 to 1 by 1"),
        (("1", "1001.5"), "a parameter must have at most 1,000 values, got 1,001"),
    ],
)
def test_scans_that_are_refused(given: tuple[str, ...], sentence: str) -> None:
    if sentence.endswith("1,001"):
        assert len(parameters.scan("1", "1000")) == 1000
    with pytest.raises(ValueError) as error:
        parameters.scan(*given)
    assert str(error.value) == sentence


def test_a_list() -> None:
    assert parameters.listed(r"a,b c,d\,e,") == ["a", "b c", "d,e", ""]


def test_all_combinations() -> None:
    found = parameters.fill(
        {"n": ["1", "2"], "x": ["{n}", "b"]}, ["f {n} {x}", "g {n}{y}"], ["f{n}{x}", "g{n}{x}"], ["p {x}"], ["make {n}"]
    )
    assert found.commands == ["f 1 {n}", "g 1{y}", "f 1 b", "g 1{y}", "f 2 {n}", "g 2{y}", "f 2 b", "g 2{y}"]
    assert found.names == ["f1{n}", "g1{n}", "f1b", "g1b", "f2{n}", "g2{n}", "f2b", "g2b"]
    assert found.prepare == ["p {n}"] * 2 + ["p b"] * 2 + ["p {n}"] * 2 + ["p b"] * 2
    assert (found.setup, found.cleanup) == (["make 1", "make 2"], [])


def test_a_name_for_each_command_that_comes_of_the_values() -> None:
    found = parameters.fill({"n": ["1", "2"]}, ["f {n}"], ["a", "b{n}"], ["p", "q {n}"])
    assert (found.names, found.prepare) == (["a", "b2"], ["p", "q 2"])
    found = parameters.fill({"n": ["1", "2"]}, ["f {n}", "g {n}"], ["a", "b", "c", "d{n}"], ["p", "q", "r"])
    assert (found.names, found.prepare) == (["a", "b", "c", "d2"], ["p", "q", "r"])


def test_nothing_changes_without_parameters() -> None:
    found = parameters.fill({}, ["a {n}", "b"], [], ["one"])
    assert (found.commands, found.prepare, found.names) == (["a {n}", "b"], ["one"], [])


def test_a_parameter_that_no_command_has_and_too_many_commands() -> None:
    with pytest.raises(ValueError, match=r"^a command must have \{n\} in it for the parameter 'n', got 'echo 1'$"):
        parameters.fill({"n": ["1"]}, ["echo 1"])
    many = [str(i) for i in range(100)]
    with pytest.raises(ValueError, match=r"^there must be at most 1,000 commands, got 10,000$"):
        parameters.fill({"n": many, "m": many}, ["{n} {m}"])
