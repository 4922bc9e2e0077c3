"""A flow: actions that users, and agents on their behalf, put on schedules at run time."""

from dataclasses import dataclass

from duetick import Context, Flow


@dataclass(frozen=True)
class Settings:
    """The part of the deployment's settings that this flow reads."""

    sender: str
    topic: str = ""


@dataclass(frozen=True)
class Greeting:
    """The input of a schedule."""

    text: str


greetings = Flow("greetings", settings=Settings)


@greetings.action("greet", policies={"delivery": "at_least_once"})
def greet(greeting: Greeting, ctx: Context) -> None:
    """Greet the user of the schedule, and publish the greeting if there is a topic."""
    settings = ctx.settings.read(Settings)
    text = f"{settings.sender} to {ctx.principal.user_id}: {greeting.text}"
    print(text)
    if settings.topic:
        publish(settings.topic, text)


def publish(topic: str, text: str) -> None:
    """Publish a text. Lambda brings boto3; the right to do it is in template.yaml."""
    import boto3

    boto3.client("sns").publish(TopicArn=topic, Message=text)
