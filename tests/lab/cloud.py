"""The stack on the emulated AWS, for a person: `make cloud`. Ctrl-C ends it."""

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path

from tests.e2e.conftest import TEMPLATE, Deployed, deploy, emulated_parameters
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.sam import Sam

TRY = """
Duetick is deployed on an AWS of this machine, and EventBridge ticks each minute.
You are the user "you", signed in by Cognito. In another terminal:

  curl -X PUT {url}/api/schedules/hello -H "Host: {host}" \\
    -H "Authorization: Bearer {token}" \\
    -d '{{"cron": "* * * * *", "flow": "reminders", "action": "remind",
         "input": {{"text": "hello"}}}}'

At the next full minute it fires. Its history:

  curl {url}/api/schedules/hello/history -H "Host: {host}" \\
    -H "Authorization: Bearer {token}"

What happens behind it: a tick by hand, and what dispatch logs.

  curl --aws-sigv4 aws:amz:{region}:lambda --user test:test -d '{{}}' \\
    {endpoint}/2015-03-31/functions/{tick}/invocations

  curl --aws-sigv4 aws:amz:{region}:logs --user test:test \\
    -H "content-type: application/x-amz-json-1.1" \\
    -H "x-amz-target: Logs_20140328.FilterLogEvents" \\
    -d '{{"logGroupName": "{log}"}}' {endpoint}

The AWS CLI and every other client of AWS see it too, after

  export AWS_ENDPOINT_URL={endpoint} AWS_DEFAULT_REGION={region} \\
    AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test

You are its operator too. The command signs, after that and one line more:

  export DUETICK_API_ADDRESS={endpoint}
  .venv/bin/duetick overview --stack {stack}
  .venv/bin/duetick schedules list --all-users --stack {stack}
  .venv/bin/duetick doctor --stack {stack}

Ctrl-C ends it, and nothing of it stays.
"""


def main() -> int:
    """Deploy, print commands to try, and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=("api", "queue"), default="api")
    transport = parser.parse_args().transport
    with tempfile.TemporaryDirectory(prefix="duetick-cloud-") as name:
        folder = Path(name)
        _say("Starting an AWS, building and deploying (about half a minute) …")
        aws = EmulatedAws(folder)
        try:
            _say(welcome(_deploy(aws, folder, transport)))
            _wait()
        finally:
            aws.stop()
    return 0


def _deploy(aws: EmulatedAws, folder: Path, transport: str) -> Deployed:
    sam, parameters = Sam(folder), emulated_parameters(aws) | {"Transport": transport}
    built = sam.build(TEMPLATE, folder / "built", parameters)
    return deploy(sam, aws, built, "duetick", parameters)


def welcome(stack: Deployed) -> str:
    """Return commands to try, which can be pasted."""
    return TRY.format(
        url=f"{stack.aws.endpoint}/v1",
        host=f"{stack.outputs['UsersApiId']}.execute-api.localhost:{stack.aws.port}",
        token=stack.user("you"),
        endpoint=stack.aws.endpoint,
        region=REGION,
        stack=stack.name,
        log=stack.log_of("Dispatch"),
        tick=stack.outputs["TickFunction"],
    )


def _wait() -> None:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
