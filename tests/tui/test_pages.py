"""The pages over the table: details, timeline."""

from moments import World
from playing import play


def test_details_explain_the_verdict():
    async def script(p):
        await p.slices(4)
        await p.press("T", "home", "n", "enter")
        text = p.text
        for words in ("evidence", "minor-faults", "61k", "120", "508 times", "because", "minor-faults > 5 200", "suspect",
                      "cannot be seen", "labels", "base-software (software)", "since"):  # fmt: skip
            assert words in text, words

    play(script, (120, 50))


def test_advice_of_the_label_is_shown():
    async def script(p):
        await p.slices(3)
        place = next(
            i
            for i in range(len(p.state.order))
            if (l := p.state.history.shown(p.state.row(i).task.ref)) and l.label == "P_OS_Faults"
        )
        await p.press(*["down"] * place, "enter")
        assert "meaning" in p.text and "page faults all the time" in p.text

    world = World(60)
    world.kinds[:] = 0
    play(script, (120, 50), world)


def test_timeline_shows_who_held_each_cpu():
    async def script(p):
        await p.slices(20)
        text = await p.press("y")
        lanes = [line for line in text.splitlines() if line.startswith("cpu ") and "stalled" not in line]
        first = p.world.tasks[p.world.busy[20 // 5]]
        assert len(lanes) == 2 and len(set(lanes[0][9:115].strip())) == 5, (
            "a letter per process that held the CPU"
        )
        letter = lanes[0][9:115].rstrip()[-1]
        assert f"{letter} {first.comm} {first.pid}" in text and " 75%" in lanes[0]

    play(script, (120, 50))


def test_timeline_without_history_says_so():
    async def script(p):
        await p.slices(3)
        assert "not known" in await p.press("y")

    play(script, (120, 50), World(60, history=False))
