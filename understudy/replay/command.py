"""`understudy scenario from-journal JOURNAL`: writes the scenario of a recorded run."""

import sys
from argparse import Namespace
from collections.abc import Sequence

from understudy import output_files
from understudy.argparser import Parser, refuse, whole_number
from understudy.replay import journal
from understudy.replay.scenario import Replay, Selection, text_of

PROGRAM = "understudy scenario"
_MOST_BYTES = 8 * 1024 * 1024  # the largest body that `scenario run` accepts


def main(argv: Sequence[str]) -> int:
    """Parse the command line, read the journal, write the scenario."""
    parser = Parser(prog=PROGRAM, description="Scenario files, without a running cluster.")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _from_journal(
        verbs.add_parser(
            "from-journal",
            help="turn the journal of a run into a scenario that plays it back",
            description="Turn the journal of `understudy proxy` or `understudy serve` into a scenario: topics, records "
            "and offsets as they were, and the errors that clients got, at the same requests.",
        )
    )
    arguments = parser.parse_args(argv)
    try:
        return _write(arguments)
    except (journal.JournalError, output_files.OutputFileError) as error:
        refuse(f"{PROGRAM} from-journal", str(error))


def _from_journal(parser: Parser) -> None:
    parser.add_argument("journal", metavar="JOURNAL", help="the folder that --journal wrote, or one of its files")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the scenario to this file instead of stdout")
    parser.add_argument(
        "--client-id", metavar="ID", action="append", default=[],
        help="play back the errors of this client (repeatable; default: all clients)",
    )  # fmt: skip
    parser.add_argument("--since", metavar="TIME", help="only from this time on: milliseconds or 2026-11-22T10:00:00")
    parser.add_argument("--until", metavar="TIME", help="only before this time")
    parser.add_argument("--run", metavar="RUN", help="the run, by the name in its files (default: the last one)")
    parser.add_argument("--era", metavar="N", type=int, help="the part after the N-th reset (default: the last one)")
    # Both defaults as Selection has them.
    parser.add_argument(
        "--late-ms", metavar="N", type=whole_number, default=1000,
        help="play back responses that came at least this much later than necessary (default 1000)",
    )  # fmt: skip
    parser.add_argument(
        "--records",
        metavar="N",
        type=whole_number,
        default=1000,
        help="records of each partition, at most (default 1000)",
    )


def _write(arguments: Namespace) -> int:
    files = journal.files_of(arguments.journal, arguments.run)
    since, until = (None if text is None else journal.microseconds(text) for text in (arguments.since, arguments.until))
    era = journal.last_era(files) if arguments.era is None else arguments.era
    replay = Replay(Selection(tuple(arguments.client_id), arguments.late_ms, arguments.records))
    for line in journal.read(files, era, since, until):
        try:
            replay.see(line)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise journal.JournalError(
                f"{line['api']} request {line['id']} of {files[0].name} cannot be read ({error!r}); was the file "
                "edited, or written by another version of Understudy?"
            ) from error
    if not replay.requests:
        raise journal.JournalError(
            f"{arguments.journal} has no such requests; look at --client-id, --since, --until, --era"
        )
    brokers = ",".join(map(str, replay.brokers))
    options = "" if brokers == "1" else f" --brokers {brokers}"
    scenario = replay.scenario(f"From the journal {files[0].name}. understudy serve{options} --scenario FILE")
    content = text_of(scenario).encode()
    if len(content) > _MOST_BYTES:
        raise journal.JournalError(
            f"the scenario would have {len(content)} bytes, more than can be read; lower --records"
        )
    if arguments.output is None:
        sys.stdout.write(content.decode())
    else:
        output_files.write_new(arguments.output, content, "--output")
    report = [replay.summary(scenario), *(f"not reproduced: {each}" for each in replay.not_reproduced())]
    print(
        *report,
        f"serve it: understudy serve{options} --scenario {arguments.output or 'FILE'}",
        sep="\n",
        file=sys.stderr,
    )
    return 0
