"""Against a direct run with the same seed: the same text, tool calls, finish reasons and usage."""
import answer
import cases

CASES = cases.answered


def test_answer_equals_a_direct_one(rig, case):
    run = rig.run(case)
    direct, through = answer.read(run.direct), answer.read(run.response)
    assert through == direct


def test_answer_has_content(rig, case):
    """Guards the comparison above: two empty answers would be equal, too."""
    through = answer.read(rig.run(case).response)
    assert sorted(through.choices) == list(range(case.choices))
    assert all(choice.text or choice.tools for choice in through.choices.values())
    assert through.done == (rig.engine.done_marks if case.streamed else 0)
    assert not through.errors
    if case.name.endswith("stop"):
        assert through.finishes() == {"stop"}
    if case.name in ("chat-tool", "chat-stream-tool"):
        assert [name for name, _ in through.choices[0].tools.values()] == ["get_weather"]
