"""Transparency: what the client got is what the engine sent, byte for byte, by the tap's record."""
import call
import cases

CASES = cases.every


def test_request_arrives_as_sent(rig, case):
    run = rig.run(case)
    seen = run.request_seen
    assert (seen.method, seen.path, seen.whole) == (case.method, case.path, True)
    assert seen.body == (case.body or b"")
    sent = {"user-agent": "engine-tests", "accept": "*/*"} | ({"content-type": "application/json"} if case.body else {})
    assert {name: seen.header(name) for name in sent} == sent


def test_response_arrives_as_sent(rig, case):
    run = rig.run(case)
    got, seen = run.response, run.response_seen
    assert got.whole and seen.whole
    assert got.status == seen.status == (case.error or 200)
    assert got.end_to_end() == seen.end_to_end()
    assert got.body == seen.body


def test_response_arrives_as_sent_to_curl(rig, case):
    name = rig.new_name(case)
    with call.Curl(rig.address, case, name) as curl:
        code, status, headers, body = curl.finish()
    request, seen = rig.tap.exchanges(name)[-1]
    assert code == 0
    assert status == seen.status == (case.error or 200)
    assert headers == seen.end_to_end()
    assert request.body == (case.body or b"")
    assert body == seen.body
