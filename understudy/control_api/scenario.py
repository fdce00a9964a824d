"""Scenarios: the verbs that have steered a cluster since its start or its last reset, and how to repeat them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, TypedDict

from understudy.control_api.fields import About
from understudy.control_api.verb import Verb

_SUCH = {"verb": "faults add", "arguments": {"api": "EndTxn", "error": "NOT_COORDINATOR"}}


class ScenarioStep(TypedDict, total=False):
    """One step: a verb of `understudy ctl`, with its arguments by the names that the Python client has."""

    verb: Required[Annotated[str, About("such as `clock advance`", least=1)]]
    arguments: Annotated[Mapping[str, Any], About("of the verb", such={"ms": 60_000})]
    made: Annotated[str, About("id of the fault that it made when it was recorded, for later steps that name it")]
    at_ms: Annotated[int, About("when it was recorded, by the cluster's clock; not used when it is repeated")]
    calls: Annotated[Sequence[str], About("the same over HTTP, in Python and in a shell; for people")]
    about: Annotated[str, About("a remark, for people")]


class ScenarioRequest(TypedDict, total=False):
    """The steps of a scenario, in order."""

    steps: Required[
        Annotated[
            Sequence[Annotated[ScenarioStep, About(such=_SUCH)]],
            About("done one after the other", like="a list of steps", such=[_SUCH]),
        ]
    ]
    scenario: Annotated[Literal[1], About("version of the form of scenario files")]
    about: Annotated[str, About("a remark, for people")]
    dropped: Annotated[int, About("of a recording: number of older steps that were dropped")]


class ScenarioDone(TypedDict):
    """What a scenario has done."""

    steps: Annotated[int, About("how many were done")]


VERBS = (
    Verb("scenario record", "GET", "/v1/scenario", "scenario.record()",
         "the commands that have changed the cluster since its start or its last reset, as a scenario file",
         answer="scenario.ScenarioRecord", items="steps", columns=("at_ms", "verb", "arguments"), example={}),
    Verb("scenario run", "POST", "/v1/scenario", "scenario.run(steps)", "run the steps of a scenario, in order",
         body=ScenarioRequest, answer=ScenarioDone,
         example={"steps": [{"verb": "clock advance", "arguments": {"ms": 1000}}]}),
)  # fmt: skip
