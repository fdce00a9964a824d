"""Every behaviour that changed was seen on real brokers on both sides of its border.

The recorded answers of the two sides differ; `test_answers.py` compares Understudy with them, release by release.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from broker.settings.releases import NAMES, Behaviour
from tests.releases import (
    questions,
    questions_of_4_4,
    questions_of_groups,
    questions_of_records,
    questions_of_refusals,
    questions_of_share_groups,
)
from tests.releases.questions import QUESTIONS, Question
from tests.releases.recording import load

ROOT = Path(__file__).resolve().parents[2]
RECORDED = load()
SHOWN_BY: Final[Mapping[Behaviour, Question]] = {
    Behaviour.UNKNOWN_PRODUCER_ID: questions.a_producer_that_the_log_does_not_know,
    Behaviour.FIVE_BATCHES_REMEMBERED: questions.a_repeated_batch,
    Behaviour.COORDINATORS_NAMED_NONE: questions_of_refusals.a_coordinator_that_is_found,
    Behaviour.UNKNOWN_TOPICS_NOT_DESCRIBED: questions_of_refusals.settings_that_cannot_be_described,
    Behaviour.ELECTIONS_NOT_NEEDED: questions_of_refusals.leaders_that_need_no_election,
    Behaviour.UNEXPECTED_ERRORS_HIDDEN: questions_of_refusals.settings_that_cannot_be_altered,
    Behaviour.UNKNOWN_TOPICS_OF_CONFIGS: questions_of_refusals.settings_that_cannot_be_altered,
    Behaviour.QUOTAS_WITH_EMPTY_MESSAGES: questions_of_refusals.quotas_that_cannot_be_described,
    Behaviour.BAD_VALUES_ARE_BAD_CONFIGS: questions_of_refusals.settings_that_cannot_be_altered,
    Behaviour.REFUSALS_OF_KRAFT: questions_of_refusals.a_topic_that_cannot_be_deleted,
    Behaviour.API_VERSIONS_RANGE: questions.an_unknown_version_of_api_versions,
    Behaviour.PRODUCERS_OUTLIVE_RECORDS: questions.a_producer_whose_records_were_deleted,
    Behaviour.DEFAULT_COUNTS: questions_of_groups.a_topic_with_as_many_partitions_as_the_broker_likes,
    Behaviour.INVALID_RECORD: questions_of_records.a_record_without_a_key_for_a_compacted_topic,
    Behaviour.UNKNOWN_PRODUCERS_WELCOME: questions.a_producer_that_the_log_does_not_know,
    Behaviour.HEARTBEATS_WHILE_SYNCING: questions_of_groups.a_member_that_never_syncs,
    Behaviour.DEFAULTS_NOT_MARKED: questions_of_records.where_a_value_comes_from,
    Behaviour.PENDING_SYNC: questions_of_groups.a_member_that_never_syncs,
    Behaviour.MESSAGE_FORMAT_IGNORED: questions_of_records.message_format_0_9,
    Behaviour.CREATED_TOPICS_UNKNOWN: questions_of_groups.a_topic_that_metadata_creates,
    Behaviour.VERIFICATION: questions.a_transactional_batch_of_a_partition_that_was_not_added,
    Behaviour.ABSENT_GROUPS_NAMED: questions_of_groups.a_stranger_s_offsets,
    Behaviour.PENDING_FIRST: questions.a_stranger_while_markers_wait,
    Behaviour.NO_OLD_MESSAGES: questions_of_records.message_format_0_11,
    Behaviour.OLD_VERSIONS_CLOSE: questions_of_records.messages_with_times,
    Behaviour.SEQUENCE_BEGINS_AT_ZERO: questions.a_transaction_that_begins_with_sequence_7,
    Behaviour.TOPIC_IDS_OF_OFFSETS: questions_of_groups.stored_offsets,
    Behaviour.SEGMENTS_OF_A_MEBIBYTE: questions_of_groups.a_topic_with_small_segments,
    Behaviour.BOUNDS_AS_RANGES: questions_of_4_4.a_group_s_setting_out_of_bounds,
    Behaviour.ADDED_PARTITIONS_BOUNDED: questions_of_4_4.as_many_partitions_as_an_int_has,
    Behaviour.TOPIC_IDS_OF_PENDING_OFFSETS: questions_of_4_4.stored_offsets_of_a_transaction,
    Behaviour.CONSUMER_EMPTIED_ASSIGNMENT: questions_of_4_4.a_consumer_group_that_all_have_left,
    Behaviour.RETURNING_STATIC_MEMBERS_FIT: questions_of_4_4.a_static_member_that_returns_to_a_full_group,
    Behaviour.PREFERRED_ASSIGNOR_COUNTS: questions_of_4_4.a_vote_for_another_assignor,
    Behaviour.MALFORMED_MEMBERS_REFUSED: questions_of_4_4.a_classic_group_that_cannot_be_read,
    Behaviour.SHARE_STATE_NEVER_GOES_BACK: questions_of_share_groups.a_share_state_that_goes_back,
    Behaviour.SHARE_PARTITIONS_FROM_ZERO: questions_of_share_groups.a_partition_that_a_share_group_s_topic_gets_later,
    Behaviour.SHARE_EMPTIED_ASSIGNMENT: questions_of_share_groups.a_share_group_that_all_have_left,
}
"""The question whose answer changes with it."""
SHOWN_ELSEWHERE: Final[Mapping[Behaviour, str]] = {
    Behaviour.BROKER_CONFIGS_AUTHORIZED_FIRST: "tests/broker/settings/test_alter.py",
    Behaviour.DUPLICATES_OF_BROKERS_REFUSED: "tests/broker/settings/test_dynamic.py",
    Behaviour.LOGGER_OPERATIONS_NAMED: "tests/broker/settings/test_loggers.py",
    Behaviour.PARTITIONS_SUMMED_AS_LONG: "tests/handlers/test_create_topics.py",
    Behaviour.ACL_HOSTS_CHECKED: "tests/scenarios/core/test_old_acls.py",
    Behaviour.WRITES_OF_GROUPS_WAIT: "tests/scenarios/groups/test_commits.py",
    Behaviour.GROUPS_DESCRIBED_BY_PARTITION: "tests/handlers/test_describe_groups.py",
    Behaviour.SHARE_FETCH_OF_UNKNOWN_TOPICS: "tests/scenarios/groups/test_share_fetch.py",
    Behaviour.REPLACEMENTS_INHERIT_TARGETS: "tests/coordination/group/test_consumer_members.py",
    Behaviour.CHANGED_INSTANCES_FORGOTTEN: "tests/differential/test_recorded.py",
    Behaviour.FINITE_QUOTAS: "tests/coordination/metadata/test_quotas.py",
    Behaviour.QUOTAS_FOUND_BY_INDEX: "tests/coordination/metadata/test_quotas.py",
    Behaviour.SHARE_STATE_BATCHES_JOINED: "tests/coordination/share_state/test_share_state.py",
    Behaviour.STATIC_STREAMS_MEMBERS: "tests/coordination/group/test_streams_newer.py",
}
"""Behaviours that a client without rights of its own, or with one version of an API, cannot ask for."""


def sides(since: str) -> tuple[str, str]:
    """The release before, and the release."""
    return NAMES[NAMES.index(since) - 1], since


@pytest.mark.parametrize("behaviour", [each for each in Behaviour if each not in SHOWN_ELSEWHERE])
def test_real_brokers_changed_their_answer_with_the_behaviour(behaviour: Behaviour) -> None:
    """A behaviour without a question, or with one that both sides answer alike, fails here."""
    question = SHOWN_BY[behaviour]
    before, since = (RECORDED[name][question.__name__] for name in sides(behaviour.since))
    assert question in QUESTIONS
    assert before != since


@pytest.mark.parametrize("file", SHOWN_ELSEWHERE.values())
def test_the_other_behaviours_have_tests_of_their_own(file: str) -> None:
    """Each behaviour not asked here has a test in the file that is named."""
    assert (ROOT / file).is_file()
