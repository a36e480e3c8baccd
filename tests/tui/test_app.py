"""The life of the app: first frame, drawing, resize, failure, ASCII."""

import asyncio

import pytest
from moments import NOTES, World
from playing import SIZES, Counted, Play, play

from pmutop.tui.state import State


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_first_frame_tells_what_can_be_seen_here(size):
    async def script(p):
        for words in ("tier software", "Labels that can be given here", "Labels that cannot", "need hardware counters",
                      "sudo sysctl kernel.perf_event_paranoid=1", "F1", "F10"):  # fmt: skip
            assert words in p.text

    play(script, size)


def test_first_page_gives_way_in_two_steps():
    async def script(p):
        text = await p.slices(3)
        assert "COMMAND" in text and "Labels that can be given here" in text and "any key closes" in text
        text = await p.slices(30)
        assert "any key closes" not in text and "COMMAND" in text

    async def key(p):
        await p.slices(3)
        assert "any key closes" not in await p.press("down")
        assert "Labels that can be given here" in await p.press("i")

    play(script, greeting=True)
    play(key, greeting=True)


def test_sampling_starts_after_the_first_painted_frame_and_once():
    seen = []

    async def script(p):
        assert len(seen) == 1 and "Labels that can" in seen[0]
        await p.slices(2)
        assert len(seen) == 1

    world = World(5)

    async def run():
        app = Counted(State(world.header, NOTES), lambda: seen.append(app.canvas.text()))
        async with app.run_test() as pilot:
            await pilot.pause()
            await script(Play(app, pilot, world))

    asyncio.run(run())


def test_refresh_is_separate_from_the_interval():
    """With a slow refresh every Moment reaches the history; only few are drawn."""

    async def script(p):
        drawn = []
        draw = p.app.canvas.update
        p.app.canvas.update = lambda: (drawn.append(1), draw())
        await p.slices(20)
        assert len(drawn) <= 2 and len(p.state.history.ring) == 20

    play(script, refresh=30.0)


def test_resize_keeps_the_picture_whole():
    async def script(p):
        await p.slices(2)
        for size in ((200, 50), (40, 10), (20, 4), (300, 80), (80, 24)):
            await p.pilot.resize_terminal(*size)
            await p.pilot.pause()
            await p.slices(1)
            assert p.text
            await p.press("enter", "escape")

    play(script)


def test_failure_of_the_source_ends_the_screen_and_is_raised():
    from pmutop.errors import BadInput

    async def script(p):
        p.app.fail(BadInput("file is damaged"))
        await p.pilot.pause()

    app = play(script)
    assert isinstance(app.failure, BadInput) and app.return_code == 1


def test_ascii_only():
    async def script(p):
        assert (await p.slices(3)).isascii()
        assert (await p.press("t")).isascii()
        assert (await p.press("enter")).isascii()

    play(script, (120, 50), World(60, hostile=True), ascii_only=True)
