"""Verbs of scenarios: recording the calls that changed a cluster since its start or last reset, and repeating them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Verb

_SUCH = {"verb": "faults add", "arguments": {"api": "EndTxn", "error": "NOT_COORDINATOR"}}


class ScenarioStep(TypedDict, total=False):
    """One step: a verb of `understudy ctl`, with its arguments under their names in the Python client."""

    verb: Required[Annotated[str, About("verb, such as `clock advance`", least=1)]]
    arguments: Annotated[Mapping[str, Any], About("arguments of the verb", such={"ms": 60_000})]
    made: Annotated[
        str, About("id of the fault that the step added when it was recorded, for later steps that name it")
    ]
    at_ms: Annotated[int, About("when the step was recorded, by the cluster's clock; ignored when it runs")]
    calls: Annotated[Sequence[str], About("the same over HTTP, in Python and in a shell; ignored when it runs")]
    about: Annotated[str, About("a comment")]


class ScenarioRequest(TypedDict, total=False):
    """The steps of a scenario, in order."""

    steps: Required[
        Annotated[
            Sequence[Annotated[ScenarioStep, About(such=_SUCH)]],
            About("steps, run one after the other", like="a list of steps", such=[_SUCH]),
        ]
    ]
    scenario: Annotated[Literal[1], About("version of the format of scenario files")]
    about: Annotated[str, About("a comment")]
    dropped: Annotated[int, About("in a recording: number of older steps that were dropped")]


class ScenarioDone(TypedDict):
    """Result of a scenario."""

    steps: Annotated[int, About("number of steps that ran")]


VERBS = (
    Verb("scenario record", "GET", "/v1/scenario", "scenario.record()",
         "the commands that have changed the cluster since its start or its last reset, as a scenario file",
         answer="scenario.ScenarioRecord", items="steps", columns=("at_ms", "verb", "arguments"), example={}),
    Verb("scenario run", "POST", "/v1/scenario", "scenario.run(steps)", "run the steps of a scenario, in order",
         body=ScenarioRequest, answer=ScenarioDone,
         example={"steps": [{"verb": "clock advance", "arguments": {"ms": 1000}}]}),
)  # fmt: skip
