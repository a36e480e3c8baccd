"""Going back in time."""

import asyncio

import pytest
from moments import World
from playing import SIZES, play

from pmutop import units


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


class Looking:
    """A look-back of every Moment that was made; the screen itself holds only the newest few."""

    def __init__(self):
        self.made, self.asked, self.saved, self.busy = {}, [], [], False

    def actions(self):
        return {
            "past": self.past,
            "oldest": lambda: min(self.made, default=None),
            "save": lambda first, last: self.saved.append((first, last)) or "saved",
        }

    def past(self, first, last, give):
        if self.busy:
            return False
        self.busy = True
        self.asked.append((first, last))

        def later():
            self.busy = False
            give([self.made[number] for number in sorted(self.made) if first <= number <= last])

        self.later = later
        return True


class Kept(World):
    """Remembers its Moments in a look-back."""

    def __init__(self, looking):
        super().__init__(60)
        self.looking = looking

    def moment(self, number, **how):
        made = self.looking.made[number] = super().moment(number, **how)
        return made


def looking_back(script, size=(120, 40)):
    looking = Looking()

    async def prepared(p):
        p.state.history.slices = 20
        await p.slices(200)
        assert len(p.state.history.ring) == 20

        async def fetched():
            before = p.app.taken
            looking.later()
            async with asyncio.timeout(5):
                while p.app.taken == before:
                    await asyncio.sleep(0)

        p.fetched = fetched
        await script(p, looking)

    play(prepared, size, Kept(looking), actions=looking.actions())


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_whole_screen_goes_back_beyond_the_last_minute(size):
    async def script(p, looking):
        await p.press("left_parenthesis")
        assert "reading the look-back" in p.text and p.state.moment is looking.made[200]
        await p.fetched()
        assert "slice 50 " in p.text and "HELD" in p.text and p.state.moment is looking.made[50]
        await p.press("comma", "comma", "full_stop")
        assert "slice 49 " in p.text and len(looking.asked) == 1, "what was fetched is at hand"
        await p.slices(3)
        assert "slice 49 " in p.text, "sampling goes on, the picture is held"
        await p.press("N", "home", "down", "enter")
        row = p.state.current()
        assert row.moment is looking.made[49]
        assert f"CPU {units.percent(float(row.moment.cpu[row.index]))}%" in p.text
        await p.press("escape", "l")
        assert "slice 203 " in p.text and "HELD" not in p.text and p.state.history.older == []

    looking_back(script, size)


def test_keys_pressed_while_the_past_is_read_are_not_lost():
    async def script(p, looking):
        p.state.history.budget = 1  # eight Moments at a time
        await p.press("left_parenthesis", "left_curly_bracket", "comma")
        assert looking.asked == [(44, 51)]
        await p.fetched()
        assert looking.asked[1:] == [(18, 25)] and "reading" in p.text
        await p.fetched()
        assert p.state.moment.number == 200 - 150 - 25 - 1 == p.state.held
        await p.press("left_parenthesis")
        assert "oldest" in p.text
        await p.press("l")
        looking.later()
        await p.slices(1)
        assert p.state.held is None and "slice 201 " in p.text, (
            "what comes late does not pull the screen back"
        )

    looking_back(script)


def test_marks_are_shown_gone_to_and_bound_what_is_saved():
    async def script(p, looking):
        await p.press("w")
        assert looking.saved[-1] == (None, None)
        await p.press("comma", "m")
        assert "slice 199 " in p.text and "is marked" in p.text
        await p.press("w")
        assert looking.saved[-1] == (199, 199)
        await p.press("comma", "comma", "w")
        assert looking.saved[-1] == (197, 199)
        await p.press("left_curly_bracket")
        await p.fetched()
        await p.press("m", "w")
        assert looking.saved[-1] == (172, 199)
        line = next(line for line in p.text.splitlines() if "l live" in line)
        assert "*" in line and line.startswith("-1:20")
        await p.press("l", "apostrophe")
        assert "slice 199 " in p.text
        await p.press("apostrophe")
        await p.fetched()
        assert "slice 172 " in p.text
        await p.press("m", "apostrophe", "m", "apostrophe")
        assert "nothing is marked" in p.text

    looking_back(script)


def test_what_the_look_back_no_longer_holds_is_said():
    async def script(p, looking):
        await p.press("left_parenthesis")
        looking.made.clear()
        await p.fetched()
        await p.slices(1)
        assert "held no longer" in p.text

    looking_back(script)
