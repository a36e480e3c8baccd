"""The pages over the table: details, timeline."""

import re

from moments import World
from playing import play

from pmutop.moment import Rank


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


def test_functions_behind_each_label_while_the_details_are_open():
    asked = []
    found = [
        {"pid": 1, "comm": "x", "label": "P_OS_Faults", "slices": 12, "samples": 90,
         "functions": [{"name": "memset\x1b[31m", "share": 0.62}, {"name": "load", "share": 0.38}]}
    ]  # fmt: skip

    async def script(p):
        await p.slices(3)
        await p.press("f")
        ref = p.state.current().task.ref
        assert p.state.page == "details" and asked == [p.state.current().task.pid]
        assert "no sample yet" in p.text
        p.app.actions["functions"] = lambda: found
        text = await p.slices(1)
        assert "P_OS_Faults" in text and "12 slices, 90 samples" in text
        assert " 62% ██████░░░░ memset" in text and p.state.current().task.ref == ref
        await p.press("f")
        assert asked[-1] is None and "hot functions" not in p.text
        await p.press("f", "escape")
        assert asked[-1] is None and p.state.sampled is None, "off when the details close"
        await p.press("f", "down")
        assert asked[-1] is None and p.state.sampled is None, "off when another process is looked at"

    actions = {"hot": lambda pid: asked.append(pid) or "", "functions": list}
    play(script, (120, 50), actions=actions)


def test_functions_that_may_not_be_sampled_are_said_to_be():
    async def script(p):
        await p.slices(1)
        assert "no right" in await p.press("f") and p.state.sampled is None and not p.state.page

    play(script, (120, 40), actions={"hot": lambda pid: "no right to sample", "functions": list})


def test_details_tell_who_disturbed_it_when_and_how_much():
    async def script(p):
        hurt = next(row for row in p.world.busy.tolist() if row % 4 == 0)
        await p.slices(12)
        p.state.select(p.world.tasks[hurt].ref, 0.0)
        text = await p.press("enter")
        lines = text.splitlines()
        bars = next(line for line in lines if line.startswith("slowed     "))
        names = next(line for line in lines if line.startswith("by         "))
        assert len(re.findall("[▁-█]", bars)) == 12 and names.count("A") == 12
        other = p.world.tasks[-1]
        named = next(line for line in lines if f"{other.comm} {other.pid}" in line and "on average" in line)
        assert "12 slices" in named and "core" in named and "x2.1 on average, at most x2.1" in named
        assert len(re.findall(r"\d\d:\d\d:\d\d to \d\d:\d\d:\d\d", named)) == 1
        await p.press("comma", "comma")
        assert next(line for line in p.text.splitlines() if line.startswith("by         ")).count("A") == 10

    play(script, (120, 60))


def test_importance_is_told_from_evidence():
    """Where a ranking is there the row and the details say so, with the model's error; in the past they do not."""

    async def script(p):
        await p.slices()
        row = next(row for row in p.world.busy.tolist() if p.state.moment.reasons.get(row))
        task = p.world.tasks[row]
        p.state.selected = task.ref
        rank = Rank(
            1, task.ref, 1, 1, "x", "IPC", 61, (("\x1bmajor-faults", 70.0), ("run-delay", 30.0)), 0.031, 0.4
        )
        assert "importance" not in await p.press("enter") and p.app.looked_at == task.ref
        text = await p.slices(ranks=(rank._replace(events=(), why="9 of the 60 slices"),))
        assert "importance to its IPC  not ranked: 9 of the 60 slices" in text
        text = await p.slices(ranks=(rank,))
        assert "importance to its IPC  last 61 slices, model error 3%, always the median 40%" in text
        assert "IPC err 3%: " in text
        text = await p.slices(ranks=(rank._replace(error=0.39),))
        assert "no better than the median" in text and "IPC err" not in text
        assert "importance" not in await p.press("z") and p.app.looked_at is None

    play(script, (160, 50), World(30, ipc=True))
