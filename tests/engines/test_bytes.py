"""Transparency: the client's bytes equal the engine's, by the tap's record, without the effects of injected options."""
import asked
import call
import cases

CASES = cases.every


def test_request_arrives_as_sent(rig, case):
    run = rig.run(case)
    rig.expect_request(case, run.request_seen, run.added)


def test_response_arrives_as_sent(rig, case):
    run = rig.run(case)
    got, seen = run.response, run.response_seen
    assert got.whole and seen.whole
    assert got.status == seen.status == (case.error or 200)
    assert got.end_to_end() == seen.end_to_end()
    assert got.body == rig.for_client(seen, run.added)


def test_response_arrives_as_sent_to_curl(rig, case):
    name = rig.new_name(case)
    with call.Curl(rig.address, case, name) as curl:
        code, status, headers, body = curl.finish()
    request, seen = rig.tap.exchanges(name)[-1]
    added = rig.added(case)
    assert code == 0
    assert status == seen.status == (case.error or 200)
    assert headers == seen.end_to_end()
    asked.expect_request(case.body, request.body, added)
    assert body == rig.for_client(seen, added)
