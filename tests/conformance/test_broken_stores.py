"""The suite catches a broken store, and names the defect."""

import pytest
from duetick.domain.errors import SchemaOutdated

from tests.conformance.broken import AlteredStore, Broken, BrokenSuite
from tests.conformance.defects import BROKEN
from tests.conformance.judge import OTHERS, judge, names_of


@pytest.mark.slow
@pytest.mark.parametrize("store", BROKEN, ids=lambda store: store.name)
def test_a_broken_store_fails_the_tests_of_its_defect_and_no_others(store: Broken) -> None:
    suite = BrokenSuite(store.breaks)
    others = sorted({*names_of(suite)} - store.caught_by - store.by_chance)
    chosen = [*store.caught_by, *others[BROKEN.index(store) % OTHERS :: OTHERS]]
    assert judge(suite, store.opened, chosen).failed == store.caught_by


@pytest.mark.slow
def test_a_working_store_fails_no_test() -> None:
    working = Broken("none", _leaves_it_alone, frozenset())
    verdict = judge(BrokenSuite(working.breaks), working.opened)
    assert verdict.failed == set()
    assert len(verdict.passed) > 200


def test_a_store_that_does_not_work_at_all_counts_as_no_catch() -> None:
    unusable = Broken("unusable", _takes_the_schema_away, frozenset())
    with pytest.raises(SchemaOutdated):
        judge(BrokenSuite(unusable.breaks), unusable.opened)


def _leaves_it_alone(store: AlteredStore) -> None:
    """Nothing is broken."""


def _takes_the_schema_away(store: AlteredStore) -> None:
    with store.database.transaction() as session:
        session.script("DROP TABLE schedule_index; DROP TABLE schedules; DROP TABLE occurrences")
