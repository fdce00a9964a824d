"""Renders the result of an exam as text, JSON, JUnit XML, Markdown, an HTML page, and a badge."""

import json
from collections.abc import Iterator
from html import escape
from importlib import resources
from typing import Final
from xml.etree import ElementTree as ET

from understudy.exam.level import Level
from understudy.exam.verdicts import ABOUT, ExamResult, Result, Verdict

FORMATS: Final = ("table", "json", "junit", "markdown", "html", "badge")
MARK: Final = "<!-- understudy exam -->"
"""Identifies earlier output (`understudy.output_files`)."""
_MARKDOWN: Final = {"|": "\\|", "\\": "\\\\", "<": "&lt;", "&": "&amp;"}
_BAD: Final = (Verdict.FAIL, Verdict.FLAKY, Verdict.NON_STRICT)


def rendered(result: ExamResult, form: str) -> str:
    """Return the report in one of FORMATS, for any text that a driver has written."""
    return encodable(_rendered(result, form))


def encodable(text: str) -> str:
    """Escape unpaired surrogates, which JSON may contain and UTF-8 may not."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _rendered(result: ExamResult, form: str) -> str:
    match form:
        case "json":
            return json.dumps(result.as_json(), indent=1, ensure_ascii=False) + "\n"
        case "junit":
            return junit(result)
        case "markdown":
            return "\n".join(markdown(result)) + "\n"
        case "html":
            return html(result)
        case "badge":
            return badge(result)
    return "\n".join(table(result)) + "\n"


def heading(result: ExamResult) -> str:
    """Return the library, and the number of scenarios per verdict."""
    counts = ", ".join(f"{result.count(verdict)} {verdict.value}" for verdict in Verdict if result.count(verdict))
    return f"{result.library.name} {result.library.version}: {counts}"


def duration(result: ExamResult) -> str:
    """Return the duration of the exam, and the number of scenarios in parallel."""
    minutes, seconds = divmod(round(result.seconds), 60)
    text = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    return text if result.jobs == 1 else f"{text}, {result.jobs} scenarios at a time"


def progress_line(result: Result, number: int, count: int) -> str:
    """Return a line for a finished scenario."""
    text = f"[{number:{len(str(count))}}/{count}] {result.verdict.value:13} {result.scenario.id}"
    return f"{text}: {result.problem}" if result.verdict in _BAD else text


def table(result: ExamResult) -> Iterator[str]:
    """Return the report for a terminal: a table of areas, then each finding with its evidence."""
    yield f"understudy exam: {heading(result)}"
    yield f"against {result.cluster}"
    yield f"in {duration(result)}"
    yield ""
    areas = list(dict.fromkeys(each.scenario.area for each in result.results))
    verdicts = [verdict for verdict in Verdict if result.count(verdict)]
    width = max(map(len, ["AREA", *areas]))
    yield "  ".join(["AREA".ljust(width), *(verdict.value.upper() for verdict in verdicts)])
    for area in areas:
        cells = [
            str(sum(each.scenario.area == area and each.verdict is verdict for each in result.results))
            for verdict in verdicts
        ]
        yield "  ".join([area.ljust(width), *(c.rjust(len(v.value)) for c, v in zip(cells, verdicts, strict=True))])
    for each in result.results:
        if each.verdict in _BAD:
            yield ""
            yield from finding(each)


def finding(each: Result) -> Iterator[str]:
    """Return the text about one violated rule."""
    scenario = each.scenario
    yield f"{each.verdict.value.upper()} {scenario.id} ({scenario.level.value}): {scenario.title}"
    yield f"  found    {each.problem}"
    yield f"  correct  {scenario.correct}"
    yield f"  loss     {scenario.loss}"
    yield f"  rule     {scenario.rule}"
    yield from (f"    {line}" for line in each.evidence)


def markdown(result: ExamResult) -> Iterator[str]:
    """Return the report for a README or a pull request."""
    yield MARK
    yield ""
    yield f"# {markdown_text(heading(result))}"
    yield ""
    yield f"`understudy exam` against {result.cluster}, in {duration(result)}."
    yield ""
    yield "| scenario | level | verdict | found |"
    yield "|---|---|---|---|"
    for each in result.results:
        problem = " ".join(markdown_text(each.problem).split())
        yield f"| {each.scenario.id} | {each.scenario.level.value} | {each.verdict.value} | {problem} |"


def markdown_text(text: str) -> str:
    """Escape text for Markdown tables."""
    return "".join(_MARKDOWN.get(each, each) for each in text)


def junit(result: ExamResult) -> str:
    """Return a test case per scenario, for continuous integration."""
    suite = ET.Element(
        "testsuite",
        {
            "name": printable(f"understudy exam of {result.library.name} {result.library.version}"),
            "tests": str(len(result.results)),
            "failures": str(result.count(Verdict.FAIL)),
            "skipped": str(result.count(Verdict.NOT_SUPPORTED) + result.count(Verdict.NOT_EXERCISED)),
        },
    )
    for each in result.results:
        attributes = {"classname": each.scenario.area, "name": each.scenario.id, "time": f"{each.seconds:.3f}"}
        case = ET.SubElement(suite, "testcase", attributes)
        if each.verdict is Verdict.FAIL:
            failure = ET.SubElement(case, "failure", {"message": printable(each.problem)})
            failure.text = printable("\n".join(finding(each)))
        elif each.verdict in {Verdict.NOT_SUPPORTED, Verdict.NOT_EXERCISED}:
            ET.SubElement(case, "skipped", {"message": printable(f"{each.verdict.value}: {each.problem}")})
        elif each.verdict is not Verdict.PASS:
            ET.SubElement(case, "system-out").text = printable("\n".join(finding(each)))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def printable(text: str) -> str:
    """Return text without the control characters that XML cannot contain."""
    return "".join(
        each if (each >= " " or each in "\n\t") and each not in "\ufffe\uffff" else "\N{REPLACEMENT CHARACTER}"
        for each in text
    )


def html(result: ExamResult) -> str:
    """Return one self-contained page, sortable by its columns, with the evidence of each finding folded."""
    from jinja2 import Environment, select_autoescape

    source = resources.files("understudy.exam").joinpath("report.html").read_text(encoding="utf-8")
    page = Environment(autoescape=select_autoescape(default=True), trim_blocks=True, lstrip_blocks=True)
    return page.from_string(source).render(
        result=result,
        heading=heading(result),
        verdicts=[(verdict, ABOUT[verdict], result.count(verdict)) for verdict in Verdict],
        areas=list(dict.fromkeys(each.scenario.area for each in result.results)),
        bad=_BAD,
        levels=list(Level),
        order=[*_BAD, Verdict.NOT_EXERCISED, Verdict.NOT_SUPPORTED, Verdict.PASS],
    )


def badge(result: ExamResult) -> str:
    """Return an SVG badge: passed scenarios out of those exercised."""
    played = sum(result.count(verdict) for verdict in Verdict if verdict is not Verdict.NOT_SUPPORTED)
    text = f"{result.count(Verdict.PASS)} of {played} passed"
    colour = "#b32d2d" if result.failed else "#2d7d46"
    label = escape(printable(f"exam: {result.library.name}"))
    # Pixels: 6.4 for a character of this font, and margins, by eye.
    left, right = 8 + 6.4 * len(label), 12 + 6.4 * len(text)
    return (
        f"{MARK}\n"
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" role="img" '
        f'aria-label="{label} {text}"><title>{label} {text}</title>'
        f'<rect width="{left:.0f}" height="20" fill="#444"/>'
        f'<rect x="{left:.0f}" width="{right:.0f}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="sans-serif" font-size="11"><text x="5" y="14">{label}</text>'
        f'<text x="{left + 6:.0f}" y="14">{text}</text></g></svg>\n'
    )
