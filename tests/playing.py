"""Playing on the real app through Textual's Pilot, on made-up Moments: press keys, offer slices, read the picture."""

import asyncio
from dataclasses import replace

from moments import ADVICE, NOTES, World
from textual import events
from textual.keys import _character_to_key

from pmutop import units
from pmutop.tui.app import PmutopApp
from pmutop.tui.state import State

SIZES = [(80, 24), (120, 40), (200, 50)]


CHARACTERS = {
    "space": " ",
    "slash": "/",
    "backslash": "\\",
    "colon": ":",
    "comma": ",",
    "full_stop": ".",
    "question_mark": "?",
}


class Counted(PmutopApp):
    """Counts the keys that were answered, and the stretches of the past that came."""

    answered = taken = 0

    def take(self, asked, moments):
        super().take(asked, moments)
        self.taken += 1

    async def on_key(self, event):
        await super().on_key(event)
        self.answered += 1


class Play:
    """A running app: press keys, offer slices, read the screen as text."""

    def __init__(self, app, pilot, world):
        self.app, self.pilot, self.world = app, pilot, world
        self.state = app.state
        self.number = 0

    async def press(self, *keys):
        """Keys through the driver, as typed. (Pilot's own press sleeps 40 ms a key, which here would be minutes.)"""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
            character = key if len(key) == 1 else CHARACTERS.get(key)
            before = self.app.answered
            self.app._driver.send_message(events.Key(name, character))
            async with asyncio.timeout(5):
                while self.app.answered == before:
                    await asyncio.sleep(0)
        return self.text

    async def slices(self, count=1, ranks=(), **how):
        for _ in range(count):
            self.number += 1
            moment = self.world.moment(self.number, **how)
            self.app.offer(replace(moment, ranks=ranks) if ranks else moment)
            async with asyncio.timeout(5):
                while self.app._arrived:
                    await asyncio.sleep(0)
        return self.text

    @property
    def text(self):
        """The picture, checked to fill the screen exactly and to hold nothing that a terminal obeys."""
        width, height = self.app.size
        lines = ["".join(text for text, _ in line) for line in self.app.canvas.lines]
        assert len(lines) == height
        for line in lines:
            assert line.isprintable() and units.width(line) == width, repr(line)
        return "\n".join(lines)


def play(script, size=(80, 24), world=None, greeting=False, **options):
    """Run `script(play)` against the real app."""

    async def run():
        made = world or World(60)
        app = Counted(
            State(made.header, NOTES, ADVICE),
            options.pop("start", None),
            options.pop("actions", None),
            **options,
        )
        app.state.greeting = greeting
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(Play(app, pilot, made))
        return app

    return asyncio.run(run())
