"""Start ministack in an environment of its own: functions run in the Python that it is given.

That Python is one with what Lambda brings and no more, so that a dependency that a layer forgot is
missing here as it would be there.
"""

import json
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

sys.executable = sys.argv.pop()

from ministack import app  # type: ignore[import-not-found]  # noqa: E402
from ministack.core import iam_actions, iam_evaluator, lambda_runtime  # type: ignore[import-not-found]  # noqa: E402
from ministack.services import apigateway_v1, cloudformation, eventbridge, lambda_svc, scheduler  # type: ignore[import-not-found]  # noqa: E402
from ministack.services.cloudformation import engine, provisioners  # type: ignore[import-not-found]  # noqa: E402

end = lambda_runtime.kill_workers


def end_when_idle(workers: Iterable[Any]) -> None:
    """Let an invocation under way run to its end, as AWS does.

    If a function is updated, or one of its invocations fails, ministack would end all processes of
    the function. One that answers another caller would then tell of a file that was not found.
    """
    for worker in filter(None, workers):
        threading.Thread(target=_end_one, args=(worker,), daemon=True).start()


def _end_one(worker: Any) -> None:  # noqa: ANN401
    with worker._lock:
        end([worker])


lambda_runtime.kill_workers = end_when_idle

KEPT = Path(tempfile.mkdtemp(prefix="unpacked-"))
unpacking = threading.Lock()


class KeptZip(zipfile.ZipFile):
    """A ZIP that is unpacked once: whoever unpacks it again has a link to the same folder.

    ministack would unpack the layers for each process of a function, most of what it does.
    """

    @cached_property
    def kept(self) -> Path:
        """The folder of whatever has the same members."""
        members = [(one.filename, one.CRC) for one in self.infolist()]
        return KEPT / sha256(repr(members).encode()).hexdigest()

    def namelist(self) -> list[str]:
        """Name the members that are to be checked: none once they were."""
        return [] if self.kept.exists() else super().namelist()

    def extractall(self, path: Any = None, *asked: Any) -> None:  # noqa: ANN401
        """Unpack, or link."""
        kept = self.kept
        with unpacking:
            if not kept.exists():
                made = kept.with_suffix(".unpacking")
                super().extractall(made, *asked)
                made.rename(kept)
        os.rmdir(path)
        os.symlink(kept, path)


lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": KeptZip})

import_operation = apigateway_v1._import_operation
parse_template = engine._parse_template
update_resource = provisioners._update_resource
map_settings = provisioners._apigw_method_settings
make_alarm = provisioners._cw_metric_alarm_record


def parse_and_transform(body: str) -> object:
    """Transform a nested stack's template as its parent's: ministack would refuse its serverless
    parts.
    """
    return engine._apply_transforms(parse_template(body))


def update_with_attributes(*asked: Any) -> object:  # noqa: ANN401
    """Let an unchanged resource of a nested stack keep its attributes: ministack forgets them
    there, and keeps them in a stack that stands alone.
    """
    _kind, _id, _old, _new, stack, logical_id, *known = asked
    if not known:
        before = cloudformation._stacks[stack]["_resources"].get(logical_id, {})
        known = [before.get("Attributes")]
    return update_resource(*asked[:6], *known)


def keep_layers() -> None:
    """Keep the layers from which a starting process of a function starts, as AWS does.

    ministack would delete them under it, as soon as the function has others.
    """


def import_with_answers(
    api: str, resource: str, method: str, operation: dict[str, Any] | None, *more: object
) -> None:
    """Add the answers of an OpenAPI document's MOCK, which ministack leaves out."""
    import_operation(api, resource, method, operation, *more)
    described = (operation or {}).get("x-amazon-apigateway-integration") or {}
    for answer in (described.get("responses") or {}).values():
        apigateway_v1._put_integration_response(
            api, resource, method, str(answer["statusCode"]), answer
        )


def map_as_routes(settings: list[dict[str, Any]] | None) -> object:
    """Give a route its own limits: CloudFormation writes /~1api~1users for the route /api/users."""
    return map_settings([_decode(one) for one in settings or []])


def _decode(setting: dict[str, Any]) -> dict[str, Any]:
    path = setting["ResourcePath"]
    if "~1" not in path:
        return setting
    return {**setting, "ResourcePath": path.removeprefix("/").replace("~1", "/")}


def make_alarm_of_one_metric(name: str, props: dict[str, Any]) -> object:
    """Make the alarm of an expression as one of the first metric that the expression reads.

    ministack calculates no expressions, and refuses the whole stack.
    """
    stats = [one["MetricStat"] for one in props.get("Metrics") or () if "MetricStat" in one]
    if stats:
        first = stats[0]
        read = {**first["Metric"], "Statistic": first["Stat"], "Period": first["Period"]}
        props = {key: value for key, value in props.items() if key != "Metrics"} | read
    return make_alarm(name, props)


pin_origin = app.pin_request_origin
resolve_key = iam_evaluator._resolve_condition_key
extract_action = iam_actions.extract_iam_action
make_mapping = provisioners._lambda_esm_create


def pin_secure(address: str, _secure: bool) -> None:
    """Take each request as one over TLS, as AWS gets it: a policy may deny all others."""
    pin_origin(address, True)


def resolve_role(key: str, context: object) -> object:
    """Resolve a condition's key. The principal of a function is its role, not a session of it."""
    found = resolve_key(key, context)
    if key.lower() != "aws:principalarn" or ":assumed-role/" not in str(found):
        return found
    account, _, session = str(found).partition(":assumed-role/")
    return f"{account.replace(':sts:', ':iam:')}:role/{session.partition('/')[0]}"


def extract_right(service: str, *more: object) -> object:
    """Extract the right that a call needs: a batch of SQS needs the right of a single message."""
    found = extract_action(service, *more)
    return str(found).removesuffix("Batch") if service == "sqs" and found else found


def make_mapping_of_numbers(name: str, props: dict[str, Any], stack: str) -> object:
    """Make a mapping's concurrency a number, also if a parameter names it: that is a text."""
    scaling = {one: int(value) for one, value in props.get("ScalingConfig", {}).items()}
    return make_mapping(name, {**props, "ScalingConfig": scaling} if scaling else props, stack)


app.pin_request_origin = pin_secure
iam_evaluator._resolve_condition_key = resolve_role
iam_actions.extract_iam_action = extract_right
mappings = provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"]
mappings["create"] = make_mapping_of_numbers
engine._parse_template = parse_and_transform
provisioners._update_resource = update_with_attributes
lambda_svc._sweep_extract_cache = keep_layers
apigateway_v1._import_operation = import_with_answers
provisioners._cw_metric_alarm_record = make_alarm_of_one_metric
provisioners._apigw_method_settings = map_as_routes


class Zoned(str):
    """An expression of a schedule that knows its time zone: ministack reads all of them as UTC."""

    __slots__ = ("zone",)
    zone: tzinfo

    @classmethod
    def of(cls, asked: dict[str, Any]) -> "Zoned":
        made = cls(asked["ScheduleExpression"])
        made.zone = ZoneInfo(asked.get("ScheduleExpressionTimezone") or "UTC")
        return made


make_schedule, change_schedule = scheduler._create_schedule, scheduler._update_schedule
parse_fields, find_next, time_of_at = (
    eventbridge._parse_cron_fields,
    eventbridge._cron_next_fire,
    scheduler._at_time_epoch,
)
call_target, resource_of = eventbridge._invoke_target, iam_actions.extract_resource_arn


def in_its_zone(
    write: Callable[[str, dict[str, Any]], object],
) -> Callable[[str, dict[str, Any]], object]:
    """Return the write of a schedule that keeps its zone."""

    def written(name: str, asked: dict[str, Any]) -> object:
        known = {"ScheduleExpression": Zoned.of(asked)} if "ScheduleExpression" in asked else {}
        return write(name, {**asked, **known})

    return written


def parse_with_zone(expression: str) -> tuple[tuple[Any, ...], tzinfo] | None:
    fields = parse_fields(expression)
    return fields and (fields, getattr(expression, "zone", UTC))


def find_next_there(zoned: tuple[tuple[Any, ...], tzinfo], after: datetime) -> datetime | None:
    fields, zone = zoned
    found: datetime | None = find_next(fields, after.astimezone(zone))
    return found and found.astimezone(UTC)


def time_of_at_there(expression: str) -> float | None:
    at = time_of_at(expression)
    zone = getattr(expression, "zone", UTC)
    return at and datetime.fromtimestamp(at, UTC).replace(tzinfo=zone).timestamp()


def call_with_time(
    target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any], view: object = None
) -> object:
    """Put the scheduled time into an input, and let no other schedule wait for the target."""
    if event.get("Source") != "aws.scheduler":
        return call_target(target, event, rule, view)
    at = time_of_at_there(rule["ScheduleExpression"]) or event["Time"] // 60 * 60
    named = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    given = (target.get("Input") or "").replace("<aws.scheduler.scheduled-time>", named)
    call = (target | ({"Input": given} if given else {}), event, rule, view)
    return call_target(*call)


def resource_in_its_group(service: str, *request: Any) -> object:  # noqa: ANN401 -- as it is given
    """Return the resource of a schedule in its group: ministack takes it for one of `default`."""
    found = resource_of(service, *request)
    if service != "scheduler" or "/default/" not in found:
        return found
    _, _, _, body, query, *_ = request
    named = query.get("groupName") or json.loads(body or b"{}").get("GroupName") or "default"
    return found.replace("/default/", f"/{named[0] if isinstance(named, list) else named}/")


scheduler._SCHEDULE_TICK_INTERVAL = 1
scheduler._create_schedule = in_its_zone(make_schedule)
scheduler._update_schedule = in_its_zone(change_schedule)
scheduler._at_time_epoch = time_of_at_there
eventbridge._parse_cron_fields = parse_with_zone
eventbridge._cron_next_fire = find_next_there
eventbridge._invoke_target = call_with_time
iam_actions.extract_resource_arn = resource_in_its_group

if __name__ == "__main__":
    app.main()
