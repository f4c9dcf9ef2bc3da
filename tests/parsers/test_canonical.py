"""Forms that parsers read differently are not canonical."""
import canonical
import pytest


@pytest.mark.parametrize("message", [
    b"GET / HTTP/1.1\nHost: a\r\n\r\n",
    b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
    b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    b"GET / HTTP/1.1\r\nx: a\0\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n01\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;b\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
])
def test_other_forms_are_not_canonical(message):
    with pytest.raises(canonical.NotCanonical):
        canonical.every(canonical.request, message)


def test_canonical_requests_are_read():
    stream = b"GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n"
    messages = [message for message, _ in canonical.every(canonical.request, stream)]
    assert [(*message.start, message.body) for message in messages] == [(b"GET", b"/a", b""), (b"POST", b"/b", b"0123456789")]
