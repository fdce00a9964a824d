"""The verb behind the console's start page."""

from control_api.verb import Verb

VERBS = (
    Verb("overview", "GET", "/v1/overview", "overview()",
         "current activity: rates, errors, clients, groups with lag, open transactions, faults, holds, refusals",
         answer="overview.Overview", example={}),
)  # fmt: skip
