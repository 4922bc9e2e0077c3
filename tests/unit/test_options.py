"""A command's answer to a number that is none, or cannot be: no stack, and no word of Python's."""

import pytest
from duetick.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["local", "--port", "abc"], "--port: expected a whole number, got 'abc'"),
        (["local", "--port", "9" * 5_000], "--port: expected a whole number, got '999"),
        (["costs", "--memory", "x"], "--memory: expected a whole number from 128 to 10240, got"),
        (["costs", "--memory", "-5"], "--memory: expected a whole number from 128 to 10240, got"),
        (["costs", "--memory", "0"], "--memory: expected a whole number from 128 to 10240, got"),
        (["costs", "--tick-minutes", "0"], "--tick-minutes: expected a number of more than 0"),
        (["costs", "--tick-minutes", "-1"], "--tick-minutes: expected a number of more than 0"),
        (["costs", "--tick-minutes", "nan"], "--tick-minutes: expected a number of more than 0"),
        (["costs", "--tick-minutes", "inf"], "--tick-minutes: expected a number of more than 0"),
        (["costs", "--tick-minutes", "often"], "--tick-minutes: expected a number of more than"),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_what_is_right(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert f"error: argument {said}" in told
    assert "invalid" not in told


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999", "http://127.0.0.1:0", "http://[::1", "http://h:x", "ftp://h"]
)
def test_an_address_where_nothing_can_be_is_told_without_a_stack(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedules", "--url", url, "--token", "x", "list"]) == 1
    told = capsys.readouterr().err
    assert told == (
        f"duetick: The API's address is no http(s) URL with a port from 1 to 65535: {url!r}.\n"
    )
