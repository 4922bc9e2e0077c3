"""The filter of a list of schedules: by flow, by label, by a text."""

from collections.abc import Mapping
from dataclasses import dataclass

from duetick.core.occurrences import read_label
from duetick.domain.redaction import redact, redact_text
from duetick.domain.schedule import IndexRow, Json, Record


@dataclass(frozen=True, slots=True)
class Sought:
    """The schedules that a caller seeks. A search reads only what the caller may read: an operator
    finds nothing by a secret.
    """

    flow: str | None = None
    label: tuple[str, str] | None = None
    text: str | None = None
    operator: bool = False

    @classmethod
    def read(
        cls,
        flow: str | None = None,
        label: str | None = None,
        text: str | None = None,
        *,
        operator: bool = False,
    ) -> "Sought":
        """Read the filters of a caller. Raises InvalidSchedule if the label is no NAME=TEXT."""
        return cls(flow, read_label(label), text.casefold() if text else None, operator)

    @property
    def anything(self) -> bool:
        """True if every schedule is sought."""
        return (self.flow, self.label, self.text) == (None, None, None)

    def takes(self, one: Record | IndexRow | None) -> bool:
        """Return True if the schedule is sought.

        A row without a record has no labels. A row that cannot be read (None) is found only if
        anything is sought.
        """
        if one is None:
            return self.anything
        if self.flow is not None and one.flow != self.flow:
            return False
        if self.label is None and self.text is None:
            return True
        labels = self._labels(one)
        labelled = self.label is None or labels.get(self.label[0]) == self.label[1]
        return labelled and (self.text is None or self._has_text(one, labels, self.text))

    def _labels(self, one: Record | IndexRow) -> Mapping[str, Json]:
        labels: Json = dict(one.labels) if isinstance(one, Record) else {}
        shown = redact(labels) if self.operator else labels
        return shown if isinstance(shown, dict) else {}

    def _has_text(self, one: Record | IndexRow, labels: Mapping[str, Json], text: str) -> bool:
        cron = redact_text(one.cron) if self.operator else one.cron
        texts = [one.key, cron, one.flow, *labels, *labels.values()]
        if self.operator:
            texts.append(one.user_id)
        if isinstance(one, Record):
            texts += [one.action, one.external_id]
        return any(text in str(each).casefold() for each in texts if each)
