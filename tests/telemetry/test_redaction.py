"""What is masked, what is left, and that masking is final, complete and linear."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telemetry.redaction import MASK, Redactor, names_a_secret, redact

TOKEN = "spi_pat_" + "a1B2" * 12
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
SECRETS = ("correct horse", "S3cr3t/Value+1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"the token {TOKEN} failed", "the token spi_pat_*** failed", id="a token keeps its kind"),
        pytest.param(f"x{TOKEN.upper()}", "xSPI_PAT_***", id="a token in capitals"),
        pytest.param("spi_adm_short", "spi_adm_***", id="a part of a token"),
        pytest.param(f"Authorization: Bearer {TOKEN}", "Authorization: Bearer spi_pat_***", id="a header"),
        pytest.param("authorization: bearer abc.def-_~+/=", "authorization: bearer ***", id="any bearer credential"),
        pytest.param("(b'authorization', b'Bearer abc')", "(b'authorization', b'Bearer ***')", id="a header in a repr"),
        pytest.param("Basic YWxpY2U6cGFzcw==", "Basic ***", id="basic credentials"),
        pytest.param(f"jwt={JWT};", "jwt=***;", id="a JWT"),
        pytest.param(JWT.rpartition(".")[0], "***", id="a JWT without its signature"),
        pytest.param(f"prefix-{JWT}", "prefix-***", id="a JWT behind other characters"),
        pytest.param("postgresql://u:p@ss:word@h/db", "postgresql://u:***@h/db", id="a password in a URL"),
        pytest.param("postgresql+psycopg://:pw@h", "postgresql+psycopg://:***@h", id="a password without a user"),
        pytest.param("https://ghp_abc@git.example/x", "https://***@git.example/x", id="a token as a URL's user"),
        pytest.param("host=h password=hunter2 user=u", "host=h password=*** user=u", id="a connection string"),
        pytest.param("password='a b' x", "password=*** x", id="a quoted password"),
        pytest.param('{"password": "a b", "x": 1}', '{"password": ***, "x": 1}', id="a password in JSON"),
        pytest.param("passwd='never closed", "passwd=***", id="a quote that never closes"),
        pytest.param("GET /mcp?harness=x&k=v HTTP/1.1", "GET /mcp?*** HTTP/1.1", id="a query of a path"),
        pytest.param("https://h/cb?code", "https://h/cb?***", id="a query of a URL without a name"),
        pytest.param("harness?key=value", "harness?***", id="a query of a word"),
        pytest.param("the correct horse battery", "the *** battery", id="a configured secret"),
        pytest.param("/x/S3cr3t%2FValue%2B1/y", "/x/***/y", id="a configured secret in a URL"),
    ],
)
def test_a_secret_is_masked(text, expected):
    assert redact(text, SECRETS) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("superpi_requests_total and SUPERPI_HTTP__BODY_BYTES", id="names of ours"),
        pytest.param("https://issuer.example:8443/realm#alice@example.com", id="a principal"),
        pytest.param("Is it done? Yes.", id="a question"),
        pytest.param("module.keyJson.parse", id="a dotted name"),
        pytest.param("bearer of bad news"[:6], id="a word alone"),
        pytest.param("https://h:8000/@scope/x", id="a port"),
        pytest.param("/livez?", id="an empty query"),
        pytest.param("/srv/a b/été.py:12", id="a path"),
    ],
)
def test_ordinary_text_stays(text):
    assert redact(text, SECRETS) == text


def test_secrets_that_overlap_or_contain_each_other_leave_nothing_of_either():
    assert redact("xxabcdefyy", ("abcd", "cdef", "abcdef")) == "xx***yy"
    assert redact("aaaaaaa-aaaa", ("aaaa",)) == "***-***"


def test_a_secret_with_quotes_and_newlines_is_masked_as_it_is_in_json_and_in_a_repr():
    secret = "a\"b'c\nd"
    for text in (secret, repr(secret), '{"x": "a\\"b\'c\\nd"}'):
        assert "a" not in redact(text, (secret,))


def test_values_of_fewer_than_four_characters_are_words_and_stay():
    assert redact("a cat sat", ("cat", "", "a")) == "a cat sat"


PIECES = st.sampled_from(
    [
        *(
            "spi_pat_",
            "SPI_x",
            "Bearer ",
            "basic\t",
            "eyJhbGciOiJSUzI1NiJ9",
            ".",
            "://",
            "u:",
            "@",
            "?",
            "=",
            "/",
            "***",
        ),
        *("password", "=", ": ", "'", '"', "\\", " ", "\n", "a", "-", "_", "*", "é", "horse", "correct ", "\ud800"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join)


@given(TEXTS)
@example("Bearer spi_pat_***?a=b")
@example("password=password=a")
@example("password='://u:a'@h?x=1")
def test_redacting_twice_changes_nothing_more(text):
    redactor = Redactor(SECRETS)
    once = redactor(text)
    assert redactor(once) == once


@given(TEXTS, st.text("abcXYZ019+/_-=.!?&% \"'\n", min_size=4, max_size=60), TEXTS)
def test_a_configured_secret_never_comes_out(before, secret, after):
    assert secret not in redact(before + secret + after, (secret,))


@given(TEXTS, st.text("abcXYZ019", min_size=1, max_size=49), TEXTS)
def test_a_token_never_comes_out(before, secret, after):
    token = f"spi_svc_{secret}"
    assert token not in redact(f"{before} {token} {after}")


def test_the_mask_is_not_a_form_that_is_masked_further():
    assert redact(MASK, SECRETS) == MASK


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "ey",
            "eyJ",
            "eyJ.",
            "eyJabcdefghij",
            "spi_",
            "spi_pat_",
            "Bearer ",
            "Bearer",
            "://a:",
            "://",
            "?",
            "?a=",
            "/?",
        ),
        *("password", "password=", "password='", 'password="', " ", "@", ":@", "a", "a.", "***", "aaaa"),
    ],
)
def test_a_megabyte_of_any_half_of_a_pattern_is_done_well_within_the_tests_bound(piece):
    """What takes quadratic time takes hours here, so no stopwatch is needed."""
    text = piece * (1_000_000 // len(piece))
    assert len(redact(text, ("aaaa",))) <= len(text) * 2


@pytest.mark.parametrize(
    "key", ["password", "Authorization", "x-api-key", "api_key", "client_secret", "set-cookie", "token"]
)
def test_a_key_that_names_a_secret_is_known(key):
    assert names_a_secret(key)


@pytest.mark.parametrize("key", ["token_id", "tokens", "author", "request_id", "passwords_tried", "keyboard", "monkey"])
def test_a_key_that_only_sounds_like_one_is_not(key):
    assert not names_a_secret(key)
