"""Verbs of scenarios: the recorded steps, and running steps again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from broker.control.performing import perform
from broker.control.problems import Problem, unprocessable
from broker.control.recorder import Recorder
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.control.watched import Watched
from broker.time.clock import Slices, in_slices
from control_api.answers.scenario import RecordedStep, ScenarioRecord
from control_api.calls import call
from control_api.reading import Unfit, read_body_in_steps, read_query
from control_api.scenario import ScenarioDone, ScenarioRequest, ScenarioStep
from control_api.scenario_file import Scenario
from control_api.spelling import suggestion
from control_api.verb import Verb
from control_api.verbs import BY_NAME
from protocol.errors import KafkaError


class CannotRun(Exception):
    """A scenario of ``--scenario`` cannot be run; the message names the line of the step."""


class Step(NamedTuple):
    """A step of a scenario that has been checked."""

    verb: Verb
    names: Mapping[str, str]
    query: Mapping[str, str]
    document: Mapping[str, Any]
    fault_id: str


@answers("scenario record")
async def record(request: ControlRequest) -> ScenarioRecord:
    """Return the steps since the start or the last reset."""
    steps = [
        RecordedStep(
            verb=done.verb,
            arguments=dict(done.arguments),
            at_ms=done.at_ms,
            made=done.fault_id,
            calls=call(BY_NAME[done.verb], done.arguments),
        )
        for done in request.recorder.steps
    ]
    return {"scenario": 1, "steps": steps, "dropped": request.recorder.dropped}


@answers("scenario run")
async def run(request: ControlRequest, body: ScenarioRequest) -> ScenarioDone:
    """Run the steps in order, after checking all of them."""
    await _run(request, body["steps"])
    return {"steps": len(body["steps"])}


async def run_file(source: Watched, scenario: Scenario, recorder: Recorder) -> None:
    """Run the steps of a file. Raises CannotRun."""
    try:
        await _run(ControlRequest(source, {}, recorder=recorder), scenario.steps)
    except Problem as problem:
        number = int(str(problem.field).split(".")[1]) + 1
        raise CannotRun(f"{scenario.path}, line {scenario.lines[number - 1]}, {problem.detail}") from None


async def _run(request: ControlRequest, steps: Sequence[ScenarioStep | Mapping[str, Any]]) -> None:
    ready, slices = [], Slices()
    for at, step in enumerate(steps):
        await slices.pause()
        try:
            ready.append(await _prepared(step))
        except (Unfit, Problem) as error:
            raise _failed(at, str(step.get("verb")), error, "no step was done") from None
    fault_ids: dict[str, str] = {}
    for at, each in enumerate(ready):
        await slices.pause()
        names = {name: fault_ids.get(value, value) if name == "fault" else value for name, value in each.names.items()}
        one = replace(request, names=names, document=each.document)
        try:
            answer = await perform(one, each.verb, each.query)
        except (Unfit, Problem, KafkaError) as error:
            before = f"steps 1 to {at} were done" if at else "no step was done"
            raise _failed(at, each.verb.name, error, before) from None
        if each.fault_id and each.verb.name == "faults add":
            fault_ids[each.fault_id] = answer.id


def _failed(at: int, verb: str, error: Exception, before: str) -> Problem:
    """Build the problem of a step, with its number (from 1) and the steps that were done before it."""
    field, where = f"steps.{at}", None
    if isinstance(error, KafkaError):
        status, detail = 409, f"{error.code.name}, {error.message or 'the cluster refused it'}"
    elif isinstance(error, Problem):
        status, where, detail = error.status, error.field, error.detail
    else:
        status, where, detail = 422, getattr(error, "field", ""), getattr(error, "detail", str(error))
    text = f"step {at + 1} ({verb}): {detail.rstrip('.')}; {before}"
    return Problem(status, text, field=f"{field}.arguments.{where}" if where else field)


async def _prepared(step: ScenarioStep | Mapping[str, Any]) -> Step:
    """Check a step without a cluster. Raises Unfit or Problem."""
    verb = BY_NAME.get(step["verb"])
    if verb is None or verb.name == "scenario run":
        raise unprocessable(f"there is no verb {step['verb']!r}{suggestion(step['verb'], BY_NAME)}")
    arguments = step.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise unprocessable(f"'arguments' must be an object, not {json.dumps(arguments)}")
    parameters = [*verb.places, *(parameter.name for parameter in verb.parameters)]
    for name in arguments:
        if name not in parameters:
            takes = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
            raise unprocessable(f"{verb.name} has no argument {name!r}{suggestion(name, parameters)}; {takes}", name)
    for name in (*verb.places, *(parameter.name for parameter in verb.parameters if parameter.required)):
        if name not in arguments:
            raise unprocessable(f"{verb.name} needs the argument {name!r}", name)
    query = dict(parse_qsl(verb.target(arguments).partition("?")[2], keep_blank_values=True))
    document = verb.document(arguments) or {}
    read_query(verb.query, query)
    if verb.body:
        await in_slices(read_body_in_steps(verb.body, document))
    names = {name: str(arguments[name]) for name in verb.places}
    return Step(verb, names, query, document, str(step.get("made") or ""))
