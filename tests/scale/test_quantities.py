import pytest

from secondlook.errors import SecondlookError
from secondlook.scale.quantities import count, number, seconds


@pytest.mark.parametrize(
    ("text", "amount"),
    [("150ms", 0.15), ("2s", 2), (".5 s", 0.5), ("250us", 250e-6), ("1min", 60), ("1e3ms", 1)],
)
def test_times_have_units(text, amount):
    assert seconds(text) == pytest.approx(amount)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1e9", 10**9),
        ("100M", 10**8),
        ("8_841_823", 8841823),
        ("8,841,823", 8841823),
        ("2.5k", 2500),
        ("1.1k", 1100),
        ("10B", 10**10),
    ],
)
def test_counts_have_powers_of_a_thousand(text, amount):
    assert count(text) == amount
    assert number(text) == pytest.approx(amount)


@pytest.mark.parametrize("text", ["0,5s", "1,5ms", "0,500s", "1,0000s", "1,s"])
def test_a_comma_for_decimals_is_refused(text):
    with pytest.raises(SecondlookError, match="with a point for decimals"):
        seconds(text)


def test_only_whole_numbers_are_counts():
    assert number("2.5") == 2.5
    with pytest.raises(SecondlookError, match="no whole number"):
        count("2.5")


@pytest.mark.parametrize("text", ["150", "fast", "3 parsecs", "", "-1s", "ms"])
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(SecondlookError, match="150ms"):
        seconds(text)


@pytest.mark.parametrize("text", ["1ms", "many", "1e9 GB"])
def test_what_is_no_count_is_refused_with_an_example(text):
    with pytest.raises(SecondlookError, match="1e9"):
        count(text)
