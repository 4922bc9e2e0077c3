"""T-12: metrics are told where they are on; where they are off, as in the local stack, never."""

import pytest
from duetick.runtime.telemetry import metrics, record_answer

MORE_THAN_ARE_GATHERED = 150


@metrics.log_metrics
def handler(_event: object, _context: object) -> None:
    record_answer(202)


@pytest.mark.parametrize(("off", "told"), [("true", 0), ("false", MORE_THAN_ARE_GATHERED)])
def test_t12_what_is_switched_off_is_not_told_however_often(
    off: str, told: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", off)
    for _ in range(MORE_THAN_ARE_GATHERED):
        handler({}, None)
    assert capsys.readouterr().out.count("_aws") == told
