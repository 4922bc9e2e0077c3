import pytest
from duetick.testing import Stage, fire
from flows.greetings import greetings

DAY = 86_400_000
SETTINGS = {"sender": "my-app"}


def test_a_greeting_reaches_its_user(capsys: pytest.CaptureFixture[str]) -> None:
    fired = fire(greetings, action="greet", input={"text": "good morning"}, settings=SETTINGS)
    assert fired.state == "succeeded"
    assert "my-app to ann: good morning" in capsys.readouterr().out


def test_it_comes_each_day() -> None:
    with Stage(greetings, settings=SETTINGS) as stage:
        mine = stage.schedules(flow="greetings")
        mine.create("morning", cron="0 9 * * *", action="greet", input={"text": "hello"})
        assert [stage.tick(DAY).delivered for _ in range(3)] == [1, 1, 1]
