"""J-11: in a text of any shape, each token is looked at a bounded number of times."""

import pytest
from duetick.domain.redaction.known import KnownSecrets
from duetick.domain.redaction.texts import NamedSecrets

SHAPES = [
    "token.", "api_key-", "a.", "token=", "token: ", "password:password=", "token='", 'token="x"',
    "token='' ", "token=[", "token=]", "token=}", "token=]'", "'", '"', "\\", "\\'", "\\\\\"",
    '{"token":', '{"a":', "Authorization: ", "'Authorization:Digest ", "key ", "api key: ", "=:",
    "\n", "token=b'", "%22token%22%3A", "n", "\\ntoken", "aab", "secret",
    "\\u0074oken=", "\\u0022", "\\u005c", "pass%77ord", '["token",', '("token", [', '["token"',
    "'--token', ", "--token ", "--token x ", '{"name":"token"', '"name":"token","value":"',
    '"value":[', '"value":[{"name":"token",', '{"value":"a","name":"token"},', "value=", "name=",
    '"name":"token","value":[', "Bearer ", "Bearer+", "Bearer%20", "Bearer a1/", "Basic =/",
    "://", "://a:b", "://a:b/c", "://a:b@", "https%3A%2F%2F", "@:", 'token="""',
    '"""', 'token="""a"',
    "<token>", "<token", "<token a", "</token>", "<token></a>", "<token>a</token>", "<a:token ",
    "token[", "token[]", "token[0", "%5btoken", "token)=(", "token:\n ", "token:\n- ", "\n token:",
    "token: |\n ", "- token:\n", 'name="token"\r\n\r\n', "name=token/", "/token", "'Cookie', ",
    "\n\n--", "token='\\\\'",
    "...", "a...", "aab...", "b…", "''", "%25", "%2525", "%253D", "&amp;", "&amp;quot;", "&#x27;",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_j11_twice_the_text_is_at_most_twice_the_steps(shape: str) -> None:
    def steps(count: int) -> int:
        scan = NamedSecrets(shape * count)
        assert list(scan.spans()) is not None
        return scan.steps

    assert steps(2_000) <= 2 * steps(1_000) + 50
    assert steps(2_000) <= (60 + 20 * len(shape)) * 2_000


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("secret", ["aab", "{}{}{}", "b{}", "{}b"])
def test_j11_secrets_are_looked_for_in_steps_that_grow_with_text_and_secrets(
    shape: str, secret: str
) -> None:
    def steps(count: int) -> int:
        known = KnownSecrets([secret.replace("{}", shape * each) for each in range(count // 50)])
        assert list(known.spans(shape * count)) is not None
        return known.steps

    size = sum(len(secret.replace("{}", shape * each)) for each in range(2_000 // 50))
    assert steps(2_000) <= 4 * (2 * size + 2 * 2_000 * len(shape))
