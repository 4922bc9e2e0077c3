"""Actions that need no code: an occurrence becomes a message, an execution or a webhook.

    flow.action("notify", target=Queue("https://sqs.…/due"))

Each target gets the same message: the schedule, its user, the nominal time and the input. An
at-least-once delivery may send it twice, with the same `occurrence`. If the service can drop a
repeat by itself (a FIFO queue or topic, a Step Functions execution), it also gets the key to do so.
"""

from duetick.actions.aws import EventBus, Function, Queue, StateMachine, Topic
from duetick.actions.webhook import Webhook

__all__ = ["EventBus", "Function", "Queue", "StateMachine", "Topic", "Webhook"]
