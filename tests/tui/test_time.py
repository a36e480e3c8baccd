"""Going back in time."""

from playing import play


def test_pause_holds_the_picture_and_sampling_goes_on():
    async def script(p):
        await p.slices(5)
        await p.press("Z")
        held = p.text
        await p.slices(5)
        assert "HELD" in p.text and "slice 5 " in p.text and "slice 5 " in held
        await p.press("comma", "comma")
        assert "slice 3 " in p.text
        await p.press("full_stop")
        assert "slice 4 " in p.text
        await p.press("left_curly_bracket")
        assert "slice 1 " in p.text and "oldest" in p.text
        await p.press("l")
        assert "slice 10 " in p.text and "HELD" not in p.text

    play(script, (120, 40))


def test_ring_is_bounded():
    async def script(p):
        p.state.history.budget = 300_000
        await p.slices(40)
        assert p.state.history.held <= 300_000 and 2 <= len(p.state.history.ring) < 40

    play(script)
