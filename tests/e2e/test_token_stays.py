"""A caller's token ends at the server: nothing that it starts or calls is given it."""

import pytest

from tests.support.administration import administered
from tests.support.asking import Asked, tool
from tests.support.collector import collector

#: What a command is given by the process that started it.
LOOK = "env; timeout 1 cat; echo looked"


@pytest.mark.requirement("AU-7")
def test_a_token_goes_neither_to_a_command_nor_to_a_collector():
    """They are all that the server hands anything to, in either era."""
    with collector() as found:
        with administered(None, SUPERPI_OTLP_ENDPOINT=found.url, NO_PROXY="*") as office:
            token = office.token("alice")
            own = {"authorization": f"Bearer {token}", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}
            client = Asked(office.http, office.server.url, headers=own).begin()
            results = [call(tool("bash", command=LOOK))["result"] for call in (client.call, client.stateless)]
        texts = [block["text"] for result in results for block in result["content"]]
        assert [text for text in texts if "looked" not in text or token in text] == []
        assert (len(texts), len(found.raw) > 0) == (2, True)
        assert not any(token.encode() in export for export in found.raw)
