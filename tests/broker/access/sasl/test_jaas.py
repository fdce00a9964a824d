"""Values of sasl.jaas.config."""

import pytest

from broker.access.sasl.jaas import JaasError, options_of


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.B required;", {}),
        ('a.B required user_alice="secret" user_bob=hush ;', {"user_alice": "secret", "user_bob": "hush"}),
        ('  a.B\n  Optional\n  x = "a b;c=d"\n;\n', {"x": "a b;c=d"}),
        ('// users\na.B required /* of\ntests */ x="http://y" ; // end', {"x": "http://y"}),
        (r'a.B required p="say \"hi\" \\";', {"p": 'say "hi" \\'}),
    ],
)
def test_options_are_read(text: str, options: dict[str, str]) -> None:
    """With and without quotes, over several lines, with Java's comments."""
    assert options_of(text) == options


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the class of a login module is missing at character 0"),
        ("a.B;", "a flag such as required is missing at character 3"),
        ("a.B perhaps;", "'perhaps' is not a flag"),
        ("a.B required", "an option or a semicolon is missing at character 12"),
        ("a.B required x;", "option x needs =VALUE"),
        ("a.B required x=;", "a value of x is missing at character 15"),
        ('a.B required x="open;', "a value of x is missing"),
        ("a.B required; c.D required;", "only one login module may be named"),
    ],
)
def test_a_malformed_entry_is_refused(text: str, problem: str) -> None:
    """A malformed JAAS entry is refused with a sentence that names what is missing, and where."""
    with pytest.raises(JaasError) as reported:
        options_of(text)
    assert problem in str(reported.value)
