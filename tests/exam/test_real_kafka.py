"""Apache Kafka's own client, on Apache Kafka: the reference passes every MUST that it sends requests for.

On 4.4.0, or on the release whose jars KAFKA_LIBS names.
"""

import pytest

from tests.exam.libraries import LIBRARIES
from tests.exam.real import examined, kafka_jars
from tests.exam.test_libraries import built
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict

CLIENT = "java-4.4.0"


@pytest.mark.interop
@pytest.mark.nightly
@pytest.mark.timeout(5_400)
def test_the_reference_client_breaks_no_must_on_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that it breaks there is wrong, and so is a scenario; few situations do not arise."""
    built(LIBRARIES[CLIENT])
    monkeypatch.setenv("KAFKA_LIBS", str(kafka_jars()))
    result = examined(CLIENT, [])
    assert [f"{each.scenario.id}: {each.problem}" for each in result.results if each.verdict is Verdict.FAIL] == []
    assert result.count(Verdict.PASS) > len(SCENARIOS) * 0.9
