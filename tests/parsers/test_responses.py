"""What tokenmeter sends to a client, of responses of any bytes: all parsers find the same response in it."""
import canonical
import pytest
import responses_read
import rig
import scripts

READERS = {
    "h11": responses_read.by_h11,
    "llhttp": responses_read.by_llhttp,
    "aiohttp": responses_read.by_aiohttp,
    "python": responses_read.by_python,
}


@pytest.fixture(scope="module")
def answers():
    """What the client of each response receives."""
    responses = scripts.scripts(scripts.RESPONSES, 2)
    asked = [b"GET /%d HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close\r\n\r\n" % number
             for number in range(len(responses))]
    return rig.exchange(rig.Scripted(responses), asked)


def final(data):
    """The last response of a stream, which is the only final one, or `None` if there is none."""
    messages = [message for message, _ in canonical.every(canonical.response, data)]
    assert all(message.start[0].startswith(b"1") for message in messages[:-1]), data
    if not messages or messages[-1].start[0].startswith(b"1"):
        return None
    message = messages[-1]
    return int(message.start[0]), message.body, message.is_whole


def test_answers_are_canonical(answers):
    found = [final(data) for data in answers]
    assert sum(one is not None and one[0] == 200 and one[2] for one in found) > len(found) / 5, "hardly a response is whole"
    assert sum(one is not None and one[0] == 502 for one in found) > len(found) / 50, "hardly a response is invalid"


@pytest.mark.parametrize("name", READERS)
def test_parser_finds_the_same_response(name, answers):
    refused = []
    for data in answers:
        expected = final(data)
        if expected is None:
            continue
        found = READERS[name](data)
        if found is None:
            refused.append(data)
        else:
            assert found == expected, data
    print(f"{name}: {len(answers)} responses, {len(refused)} refused")
    assert len(refused) < len(answers) / 20, refused[:20]
