"""Rules that map the names in certificates, and Java's names of cipher suites."""

import pytest

from broker.access.tls.ciphers import is_of_tls_13, openssl_name
from broker.access.tls.principals import MappingError, PrincipalMapping

NAME = "CN=Alice,OU=Dept. 1,O=A,C=DE"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", NAME),
        ("RULE:^CN=(.*?),OU=.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1@$2/L,DEFAULT", "alice@$2"),
        (r"RULE:^CN=(\w+),.*C=(\w+)$/$2-$1/U", "DE-ALICE"),
        ("RULE:^OU=(.*?)$/$1/, RULE:^CN=(.*?),.*$/x\\/$1/ ,DEFAULT", "x/Alice"),
        ("RULE:CN=Alice/$0/,DEFAULT", NAME),
        (r"RULE:.*\\.*/x/,DEFAULT", NAME),
    ],
)
def test_the_first_rule_that_matches_maps_a_name(rules: str, expected: str) -> None:
    """It has to match the whole name; `$n` are its groups, L and U change the case."""
    assert PrincipalMapping(rules).name_of(NAME) == expected


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*?)$/$1", "default", "RULE:(/x/", "DEFAULT;DEFAULT"])
def test_wrong_rules_are_refused(rules: str) -> None:
    """A missing slash, an unknown rule, a pattern that is none."""
    with pytest.raises(MappingError):
        PrincipalMapping(rules)


def test_a_name_without_a_rule_has_no_principal() -> None:
    """A name that no rule matches has no principal: Kafka closes such a connection."""
    with pytest.raises(MappingError, match="no rule"):
        PrincipalMapping("RULE:^OU=(.*)$/$1/").name_of(NAME)


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE-RSA-AES128-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM", "ECDHE-ECDSA-AES128-CCM"),
        ("TLS_AES_256_GCM_SHA384", None),
    ],
)
def test_suites_have_openssls_names(suite: str, expected: str | None) -> None:
    """Those of TLS 1.3 are a list of their own."""
    assert openssl_name(suite) == expected
    assert is_of_tls_13(suite) == (expected is None)
