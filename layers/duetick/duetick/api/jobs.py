"""The operations of the API on one user's jobs."""

from collections.abc import Mapping

from duetick.api.batches import answer_each
from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import HistoryQuery, JobBody, JobsBody, JobsQuery
from duetick.core.answers import Answer
from duetick.core.histories import Wanted, lines
from duetick.core.jobs import THE_USER, UserJobs, lines_of_jobs
from duetick.core.wording import explanation_json
from duetick.domain.errors import refusals_of
from duetick.domain.identity import to_path
from duetick.domain.jobs import Job
from duetick.domain.operating import Operator
from duetick.domain.schedule import Json
from duetick.runtime import wiring


def create_job(call: ApiCall) -> Answer:
    """Enqueue a job: an action that runs once, without a schedule, at once or at a time. The same
    `key` within a day makes nothing more and is answered with the first job (200).
    """
    body = call.read_body()
    return _create(call, body)


def create_jobs(call: ApiCall) -> Answer:
    """Enqueue up to 500 jobs in one call. Each is answered by itself, in order: with its status,
    and its job or its error. One that is wrong stops no other.
    """
    listed = check_shape(JobsBody, call.read_body()).jobs
    user_id = call.schedules.user_id
    answers = answer_each(listed, lambda body: _create(call, body), user_id, operator=call.operator)
    return Answer(200, {"jobs": [_show_enqueued(one) for one in answers]})


def _show_enqueued(answer: Answer) -> Json:
    made = answer.status in (200, 201)
    job, wrong = (answer.body, None) if made else (None, answer.body)
    return {"status": answer.status, "job": job, "error": wrong}


def _create(call: ApiCall, body: Mapping[str, Json]) -> Answer:
    jobs = UserJobs(call.schedules, wiring.hand_on())
    made = jobs.enqueue(jobs.read(body, refusals_of([lambda: check_shape(JobBody, body)])))
    base = f"/api/users/{to_path(call.schedules.user_id)}" if call.operator else "/api"
    headers = {"location": f"{base}/jobs/{made.job.id}"} if made.made else {}
    return Answer(201 if made.made else 200, _view(call, made.job), headers)


def list_jobs(call: ApiCall) -> Answer:
    """Return a page of jobs, in one state or of one flow. They are ordered by id, and so by the
    time of their creation. If few jobs match, a page may be short or empty: go on until `cursor` is
    null.
    """
    query = call.read_query(JobsQuery)
    page = _jobs(call).list(query.limit, query.cursor, state=query.state, flow=query.flow)
    shown = lines_of_jobs(call.schedules, page.jobs, operator=call.operator)
    return Answer(200, {"jobs": [*shown], "cursor": page.cursor})


def get_job(call: ApiCall) -> Answer:
    """Return a job. One that has ended stays for the retention of its flow."""
    return Answer(200, _view(call, _jobs(call).get(call.key)))


def cancel_job(call: ApiCall) -> Answer:
    """End a job that waits or runs. An action that runs goes on, but can no longer settle: its
    writes in a transaction are undone. A job that is cancelled stays so.
    """
    jobs = _jobs(call)
    jobs.cancel(call.key, Operator(call.who, call.why()) if call.operator else THE_USER)
    return Answer(200, _view(call, jobs.get(call.key)))


def job_history(call: ApiCall) -> Answer:
    """Return the history of a job, with the failure hook that told of its death."""
    query = call.read_query(HistoryQuery)
    wanted = Wanted.read(query.state, query.since, query.until)
    found = [one for one in _jobs(call).history(call.key) if wanted.takes(one)][: query.limit]
    shown = lines(call.schedules.store.ledger, found, operator=call.operator)
    return Answer(200, {"history": [*shown], "cursor": None})


def explain_job(call: ApiCall) -> Answer:
    """Explain the outcome of a job, or what will become of it: a verdict, sentences, and the facts
    that they follow from.
    """
    found = _jobs(call).explain(call.key)
    return Answer(200, explanation_json(found, operator=call.operator))


def _jobs(call: ApiCall) -> UserJobs:
    return UserJobs(call.schedules)


def _view(call: ApiCall, job: Job) -> dict[str, Json]:
    return lines_of_jobs(call.schedules, [job], operator=call.operator)[0]
