"""Actions that need no code: what is due becomes a message, an execution, or a signed webhook.

    flow.action("notify", target=Queue("https://sqs.…/due"))

Each tells the same: which schedule, as whom, for which nominal time, and the input. At least once
may tell it twice: `occurrence` stays the same, and where the service can drop a repeat by itself
(a FIFO queue or topic, a Step Functions execution) it is given the means.
"""

from duetick.actions.aws import EventBus, Function, Queue, StateMachine, Topic
from duetick.actions.webhook import Webhook

__all__ = ["EventBus", "Function", "Queue", "StateMachine", "Topic", "Webhook"]
