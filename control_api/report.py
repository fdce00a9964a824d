"""The verb of the report for a failed test."""

from typing import Annotated, TypedDict

from control_api.fields import About
from control_api.verb import Verb


class ReportQuery(TypedDict, total=False):
    """The range of the report."""

    since: Annotated[
        int, About("omit requests and refusals before this time of the cluster's clock (ms)", least=0, default=0)
    ]
    # 20 requests are a screen; with 1000 it still is a report, not a journal.
    limit: Annotated[int, About("maximum number of requests; the newest are shown", least=0, most=1000, default=20)]


VERBS = (
    Verb("report", "GET", "/v1/report", "report()",
         "what a failed test should print: last requests, refusals and their reasons, unmatched faults, hints",
         query=ReportQuery, answer="report.Report", example={"limit": 10}),
)  # fmt: skip
