"""T-04: an action names the dialect of its transaction; if the store has another, nothing fires."""

from collections.abc import Callable

import pytest
from duetick import Context, Flow, Policies
from duetick.core.declarations import Transactional
from duetick.core.deployment import STEPS, Step, deploy
from duetick.core.flows import Flows
from duetick.core.store import Store
from duetick.domain.errors import ConfigurationError, InvalidSchedule
from duetick.domain.schedule import Schedule
from duetick.domain.states import Reason, State
from duetick.ports import Dialect, Transaction
from duetick.testing import FakeClock, Stage

from tests.conformance.memory_shelf import MemoryShelf
from tests.delivery.scene import EFFECTIVELY_ONCE, NINE

OTHER: dict[Dialect, Dialect] = {"sql": "dynamodb", "dynamodb": "sql"}


def write_nothing(effects: Transaction) -> None:
    """Make an effect of either kind, as far as it is allowed."""
    if effects.dialect == "sql":
        effects.run("SELECT 1")


def paying(
    transactional: Transactional, effect: Callable[[Transaction], object] = write_nothing
) -> Flow:
    """Return a flow with one action, whose effect is in its transaction."""
    flow = Flow("shop")

    @flow.action("pay", transactional=transactional)
    def pay(_given: object, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effect(effects)

    return flow


def once(policies: Policies = EFFECTIVELY_ONCE) -> Schedule:
    """Put a schedule that fires at nine."""
    return Schedule("ann", "monthly", "0 9 * * *", "shop", "pay", policies=policies)


@pytest.fixture
def spoken(each_store: Store) -> Dialect:
    """Return the dialect of the store at hand."""
    assert each_store.dialect
    return each_store.dialect


def test_t04_an_action_that_speaks_as_its_store_is_staged_on_it(
    each_store: Store, spoken: Dialect
) -> None:
    for transactional in (spoken, True):
        with Stage(paying(transactional), clock=FakeClock(NINE - 1), store=each_store) as stage:
            made = stage.put(once())
            assert stage.fire(made).state == "succeeded"
            stage.store.schedules.delete("ann", "monthly", now=stage.clock())


def test_t04_one_that_does_not_is_refused_at_the_start(each_store: Store, spoken: Dialect) -> None:
    other = OTHER[spoken]
    with pytest.raises(ConfigurationError, match=rf"shop\.pay .*'{other}'.*speaks '{spoken}'"):
        Stage(paying(other), store=each_store)


@pytest.mark.parametrize("step", STEPS)
def test_t04_one_that_does_not_is_refused_at_each_step_of_a_deploy(
    each_store: Store, spoken: Dialect, step: Step
) -> None:
    flow = paying(OTHER[spoken])
    flow.schedule("monthly", cron="@monthly", action="pay")
    with pytest.raises(ConfigurationError, match="declare transactional="):
        deploy(each_store, lambda: Flows({"shop": flow}), (step,), patience=60)
    assert not each_store.schedules.list("").schedules


def test_t04_a_store_without_effects_of_actions_refuses_each() -> None:
    with pytest.raises(ConfigurationError, match="takes no effects"):
        Stage(paying("sql"), store=Store(MemoryShelf()))


@pytest.mark.parametrize("given", ["postgres", None, 1, "SQL"])
def test_t04_what_no_transaction_speaks_is_refused_where_it_is_declared(given: object) -> None:
    declare: Callable[..., object] = Flow("shop").action
    with pytest.raises(InvalidSchedule, match="'sql', 'dynamodb', or True"):
        declare("pay", transactional=given)


def wrongly(effects: Transaction) -> None:
    """Speak as the other store does."""
    if effects.dialect == "sql":
        effects.write({"Put": {"Item": {"id": {"S": "x"}}}})
    else:
        effects.run("SELECT 1")


def test_t04_a_configuration_error_is_not_tried_again(each_store: Store) -> None:
    with Stage(paying(True, wrongly), clock=FakeClock(NINE - 1), store=each_store) as stage:
        made = stage.put(once())
        with pytest.raises(ConfigurationError):
            stage.fire(made)
        (ended,) = stage.store.ledger.find("ann", "monthly")
    assert (ended.state, ended.reason, ended.attempts) == (State.DEAD, Reason.FAILED, 1)
    assert "ConfigurationError" in (ended.error or "")


def test_t04_a_resolvers_configuration_error_is_not_tried_again(store: Store) -> None:
    flow = paying("sql")

    @flow.resolver
    def find(_id: str, _ctx: object) -> None:
        raise ConfigurationError("TABLE is not set.")

    with Stage(flow, clock=FakeClock(NINE - 1), store=store) as stage:
        stage.put(once())
        stage.tick(1)
    (ended,) = store.ledger.find("ann", "monthly")
    assert (ended.state, ended.reason, ended.attempts) == (State.DEAD, Reason.REJECTED, 1)
