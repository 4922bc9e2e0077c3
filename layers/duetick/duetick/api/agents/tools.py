"""The tools of agents: a table. Each one is a call of the users' API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from duetick.api.agents.schemas import (
    CRON,
    LABELS,
    TIMEZONE,
    each_or_null,
    flow_and_action,
    inputs,
    or_null,
    policies,
    policies_of_times,
    text,
    tool_schema,
)
from duetick.core.flows import Flows
from duetick.core.offers import Schema
from duetick.domain.identity import LONGEST_ID
from duetick.domain.schedule import LONGEST_NOTE, Json

INSTRUCTIONS: Final = (
    "Duetick runs actions of this application at times that its user chooses: schedules fire again "
    "and again, jobs run once. All is the user's own. To make a schedule: list_actions for what "
    "may run and with which input, preview_schedule for when a cron would fire, create_schedule. "
    "Tell the user the time zone that you chose. An error says what is wrong with each field and "
    "what to do next. Times are UTC text, such as 2026-12-01T09:00:00Z."
)

KEY: Final = text("The name of the schedule among the user's own.", maxLength=LONGEST_ID)
JOB: Final = text("The id of the job, as enqueue_job and list_jobs tell it: occ_….")
FROM: Final = text("The instant from which on, such as 2026-12-01T00:00:00Z.", format="date-time")
TO: Final = text("The instant before which it ends.", format="date-time")
LIMIT: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "maximum": 100,
    "default": 20,
    "description": "The most entries of this page.",
}
CURSOR: Final = text("The `cursor` of the page before, to go on after it.")
DRY: Final[Schema] = {
    "type": "boolean",
    "default": False,
    "description": "True checks everything and stores nothing.",
}
STATES: Final[list[Json]] = [
    "scheduled", "queued", "processing", "retrying", "succeeded", "dead", "cancelled", "deleted",
]  # fmt: skip
LISTED: Final[Mapping[str, Schema]] = {"limit": LIMIT, "cursor": CURSOR}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its route, and the places of its arguments.

    One argument `names` the schedule or job: it goes into the path as `{key}`, and is required. The
    arguments in `query` and `headers` go there, all others into the body.

    A tool that `reads` changes nothing; one that `destroys` takes something away for good; one that
    may be `repeated` does nothing more the second time. `of_actions` are arguments whose schema the
    deployment's actions make.
    """

    name: str
    title: str
    description: str
    method: str
    path: str
    arguments: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    names: str = ""
    query: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, Json] = field(default_factory=dict)
    of_actions: tuple[str, ...] = ()
    reads: bool = False
    destroys: bool = False
    repeated: bool = False

    def takes(self) -> tuple[str, ...]:
        """Return the names of the arguments."""
        return (*self.of_actions, *self.arguments)

    @property
    def outside_body(self) -> frozenset[str]:
        """The arguments that are not in the body."""
        return frozenset((self.names, *self.query, *self.headers))

    @property
    def has_body(self) -> bool:
        """True if the call has a body: the API says what is wrong with its arguments."""
        return not self.outside_body.issuperset(self.takes())

    def json(self, made: Mapping[str, Schema], defined: Schema) -> dict[str, Json]:
        """Return the tool as a client lists it. `made` are the schemas that the actions make."""
        own = {name: made[name] for name in self.of_actions}
        required = (*filter(None, [self.names]), *self.required)
        needs_defined = defined if self.of_actions else {}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": tool_schema({**own, **self.arguments}, required, needs_defined),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads,
                "destructiveHint": self.destroys,
                "idempotentHint": self.reads or self.repeated,
                "openWorldHint": False,
            },
        }


LIST_ACTIONS: Final = Tool(
    "list_actions",
    "List actions",
    "List what may be scheduled: each flow with its actions, the JSON Schema of each action's "
    "input, the action's policies, and those that a schedule may change (`mayChange`). Read this "
    "before the first create_schedule or enqueue_job.",
    "GET",
    "/api/flows",
    reads=True,
)
PREVIEW: Final = Tool(
    "preview_schedule",
    "Preview a schedule",
    "Say what a cron means before anything is saved: a sentence in words, the next fire times in "
    "UTC and local time, changes of the clocks, and warnings. It stores nothing. Use it to check a "
    "cron that you wrote, and show the user the next times.",
    "POST",
    "/api/upcoming",
    {
        "cron": CRON,
        "timezone": TIMEZONE,
        "policies": policies_of_times(),
        "after": text("The instant after which to look; now by default.", format="date-time"),
        "limit": LIMIT | {"default": 10, "description": "How many times."},
    },
    ("cron",),
    reads=True,
)
CREATE: Final = Tool(
    "create_schedule",
    "Create a schedule",
    "Create a schedule: an action that runs again and again, when the cron says. It is refused if "
    "the key is taken; change_schedule changes one that is there. Without a key it gets one, which "
    "the answer has. For something that runs once, use enqueue_job.",
    "POST",
    "/api/schedules",
    {
        "cron": CRON,
        "timezone": TIMEZONE,
        "key": KEY
        | {"description": "A short name for it, such as weekly-report; without it, any."},
        "labels": LABELS,
        "enabled": {"type": "boolean", "default": True, "description": "False makes it paused."},
        "dryRun": DRY,
        "idempotencyKey": text(
            "Any text that is new for each wish of the user. If this call is repeated with it "
            "within a day, no second schedule is made.",
            maxLength=256,
        ),
    },
    ("cron", "flow", "action"),
    query=("dryRun",),
    headers={"idempotencyKey": "Idempotency-Key"},
    of_actions=("flow", "action", "input", "policies"),
)
GET: Final = Tool(
    "get_schedule",
    "Read a schedule",
    "Read one schedule: when it fires, what it runs, whether it is paused, when it fires next "
    "(`nextFireAt`).",
    "GET",
    "/api/schedules/{key}",
    {"key": KEY},
    names="key",
    reads=True,
)
LIST: Final = Tool(
    "list_schedules",
    "List schedules",
    "List the user's schedules by key, in pages. Go on with the `cursor` until it is null; a page "
    "may be short.",
    "GET",
    "/api/schedules",
    {
        "text": text("A text to look for in key, cron, flow, action or labels."),
        "flow": text("Those of this flow alone."),
        "label": text("Those with this label alone, written NAME=TEXT."),
        "state": text(
            "The default is active and paused together. A schedule that is done never fires again.",
            enum=["active", "paused", "done", "all"],
        ),
        **LISTED,
    },
    query=("text", "flow", "label", "state", "limit", "cursor"),
    usual={"limit": 20},
    reads=True,
)
CHANGE: Final = Tool(
    "change_schedule",
    "Change a schedule",
    "Change some fields of a schedule; all others stay. In policies and labels each name changes "
    "by itself. null takes a field back to its default. The input is replaced as a whole: read it "
    "first, and write all of it.",
    "PATCH",
    "/api/schedules/{key}",
    {
        "key": KEY,
        "cron": CRON,
        "timezone": TIMEZONE | {"type": ["string", "null"]},
        "labels": LABELS | {"additionalProperties": {"type": ["string", "null"]}},
        "enabled": {"type": "boolean", "description": "True resumes it, false pauses it."},
        "dryRun": DRY,
    },
    names="key",
    query=("dryRun",),
    of_actions=("flow", "action", "input", "policies"),
    repeated=True,
)
PAUSE: Final = Tool(
    "pause_schedule",
    "Pause a schedule",
    "Keep a schedule from firing, until a time or until resume_schedule. Fires that it misses "
    "meanwhile are not made up for.",
    "POST",
    "/api/schedules/{key}/pause",
    {
        "key": KEY,
        "until": text("The instant at which it fires again; without it, not by itself.",
                      format="date-time"),
        "note": text("The reason, for the history.", maxLength=LONGEST_NOTE),
    },
    names="key",
    repeated=True,
)  # fmt: skip
RESUME: Final = Tool(
    "resume_schedule",
    "Resume a schedule",
    "Let a paused schedule fire again, from now on.",
    "POST",
    "/api/schedules/{key}/resume",
    {"key": KEY},
    names="key",
    repeated=True,
)
DELETE: Final = Tool(
    "delete_schedule",
    "Delete a schedule",
    "Delete a schedule for good; its history stays. Ask the user first. pause_schedule is the same "
    "with a way back.",
    "DELETE",
    "/api/schedules/{key}",
    {"key": KEY},
    names="key",
    destroys=True,
    repeated=True,
)
HISTORY: Final = Tool(
    "schedule_history",
    "Read the history of a schedule",
    "List what became of the fire times of a schedule, the newest first, in pages: the state of "
    "each, its attempts, and the error of one that failed. It outlives the schedule.",
    "GET",
    "/api/schedules/{key}/history",
    {"key": KEY, "state": text("Those in this state alone.", enum=STATES), "from": FROM, "to": TO,
     **LISTED},
    names="key",
    query=("state", "from", "to", "limit", "cursor"),
    usual={"limit": 20},
    reads=True,
)  # fmt: skip
EXPLAIN: Final = Tool(
    "explain_schedule",
    "Explain a schedule",
    "Say why a schedule fired at a time, why it did not, or whether it will: a verdict, sentences "
    "for the user, and the facts that they follow from.",
    "GET",
    "/api/schedules/{key}/explain",
    {"key": KEY, "at": text("The time in question; now by default.", format="date-time")},
    names="key",
    query=("at",),
    reads=True,
)
ENQUEUE: Final = Tool(
    "enqueue_job",
    "Enqueue a job",
    "Run an action once: at once, `at` an instant, or after a `delay`. Give a `key` that is new "
    "for each wish of the user: if this call is repeated with it within a day, no second job is "
    "made.",
    "POST",
    "/api/jobs",
    {
        "at": text("The instant at which it runs, such as 2026-12-01T09:00:00Z.",
                   format="date-time"),
        "delay": {"type": "number", "minimum": 0, "description": "Seconds from now; not with at."},
        "key": text("Any text; within a day, the same key in a flow makes one job.", maxLength=256),
        "labels": LABELS,
    },
    ("flow", "action"),
    of_actions=("flow", "action", "input", "policies"),
)  # fmt: skip
LIST_JOBS: Final = Tool(
    "list_jobs",
    "List jobs",
    "List the user's jobs by id, which begins with the time at which each was made, in pages.",
    "GET",
    "/api/jobs",
    {
        "state": text("Those in this state alone; pending have not ended.",
                      enum=["pending", "ended", "all", *STATES]),
        "flow": text("Those of this flow alone."),
        **LISTED,
    },
    query=("state", "flow", "limit", "cursor"),
    usual={"limit": 20},
    reads=True,
)  # fmt: skip
GET_JOB: Final = Tool(
    "get_job",
    "Read a job",
    "Read one job: its state, and its error if it failed.",
    "GET",
    "/api/jobs/{key}",
    {"id": JOB},
    names="id",
    reads=True,
)
EXPLAIN_JOB: Final = Tool(
    "explain_job",
    "Explain a job",
    "Say what became of a job, or what will: a verdict, sentences for the user, and the facts.",
    "GET",
    "/api/jobs/{key}/explain",
    {"id": JOB},
    names="id",
    reads=True,
)
CANCEL_JOB: Final = Tool(
    "cancel_job",
    "Cancel a job",
    "End a job that waits or runs, for good. An action that runs goes on, but its result no longer "
    "counts.",
    "POST",
    "/api/jobs/{key}/cancel",
    {"id": JOB},
    names="id",
    destroys=True,
    repeated=True,
)

TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        LIST_ACTIONS, PREVIEW, CREATE, GET, LIST, CHANGE, PAUSE, RESUME, DELETE, HISTORY, EXPLAIN,
        ENQUEUE, LIST_JOBS, GET_JOB, EXPLAIN_JOB, CANCEL_JOB,
    )
}  # fmt: skip


def list_tools(flows: Flows) -> list[Json]:
    """Return the tools of a deployment, with its actions in their schemas."""
    schema, defined = inputs(flows)
    of_schedules = flow_and_action(flows) | {"input": schema, "policies": policies(flows)}
    of_jobs = of_schedules | {"policies": policies(flows, of_jobs=True)}
    of_changes = of_schedules | {
        "input": or_null(schema),
        "policies": each_or_null(of_schedules["policies"]),
    }
    made = {ENQUEUE.name: of_jobs, CHANGE.name: of_changes}
    return [tool.json(made.get(tool.name, of_schedules), defined) for tool in TOOLS.values()]
