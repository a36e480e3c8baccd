"""Every key, at three sizes: none breaks the picture, each does what the help says."""

import asyncio
import re

import pytest
from playing import SIZES, play
from textual import events

from pmutop.tui.app import PmutopApp
from pmutop.tui.columns import COLUMNS
from pmutop.tui.keys import KEYS, VIM_KEYS


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_key_before_and_after_the_first_slice(size):
    """No key breaks the picture, whatever is on the screen; none but the quitting ones ends the app."""
    names = ("signal", "renice", "affinity", "threads", "save", "pause", "seek")
    keys = [key for row in KEYS for key in row.keys if row.action != "quit"]

    async def script(p):
        for key in keys:
            await p.press(key, "escape", "escape", "escape")
            assert p.app.return_code is None, key
        await p.slices(3)
        for key in keys:
            await p.press("down", "down", key)
            await p.slices(1)
            await p.press("down", "enter", "escape", "escape", "escape")
            assert p.app.return_code is None, key
            assert not (p.state.page or p.state.menu or p.state.prompt), (
                f"{key}: escape closes what it opened"
            )

    play(script, size, actions={name: lambda *arguments: "" for name in names})


@pytest.mark.parametrize("key", [key for row in KEYS for key in row.keys if row.action == "quit"])
def test_quitting_keys(key):
    async def script(p):
        await p.slices(1)
        p.app._driver.send_message(events.Key(key, None))
        async with asyncio.timeout(5):
            while p.app.return_code is None:
                await asyncio.sleep(0.01)

    assert play(script).return_code == 0


def test_vim_keys_move():
    async def script(p):
        await p.slices(2)
        await p.press("j", "j", "k")
        assert p.state.cursor == 1
        await p.press("G")
        assert p.state.cursor == len(p.state.order) - 1 > 50
        await p.press("g")
        assert p.state.cursor == 0

    play(script, vim=True)
    assert set(VIM_KEYS.values()) <= {row.action for row in KEYS}


def test_mouse_selects_and_scrolls():
    async def script(p):
        await p.slices(3)
        await p.pilot.click(offset=(10, 8))
        assert p.state.cursor == 8 - p.state.first_line
        await p.pilot.click(offset=(10, 8), times=2)
        assert p.state.page == "details"
        await p.press("escape")
        p.app.on_mouse_scroll_down()
        assert p.state.cursor == 8 - p.state.first_line + 3

    play(script)


def test_no_key_means_two_things():
    keys = [key for row in KEYS for key in row.keys]
    assert len(keys) == len(set(keys))
    actions = [row.action for row in KEYS]
    assert len(actions) == len(set(actions))
    assert all(hasattr(PmutopApp, f"do_{action}") for action in actions)


def test_palette_lists_every_command():
    async def script(p):
        await p.slices(1)
        await p.press("colon")
        assert {value for _, value in p.state.menu.choices} == {row.action for row in KEYS} - {"palette"}
        await p.press(*"who hurts", "enter")
        assert p.state.page == "blame"

    play(script, (120, 40))


def test_help_lists_every_key_and_column():
    async def script(p):
        await p.press("question_mark")
        pages = [p.text]
        for _ in range(12):
            pages.append(await p.press("pagedown"))
        text = re.sub(r"\s+", " ", " ".join(pages))
        for row in KEYS:
            assert row.shown in text and row.help[:30] in text, row
        for column in COLUMNS:
            assert column.name in text and column.help[:30] in text

    play(script, (120, 40))


def test_column_menu_is_kept():
    kept = []

    async def script(p):
        await p.slices(1)
        await p.press("f2")
        assert "Columns" in p.text
        await p.press("down", "enter")
        assert "USER" not in p.state.columns and kept[-1]["columns"] == p.state.columns
        await p.press("enter", "escape")
        assert p.state.columns == [column.name for column in COLUMNS]

    play(script, (120, 40), keep=kept.append)


def test_actions_reach_the_tagged_and_errors_become_the_message_line():
    sent = []

    def kill(task, number):
        sent.append((task.pid, number))
        return "" if len(sent) < 3 else f"no right to signal {task.pid}"

    async def script(p):
        await p.slices(2)
        await p.press("space", "space", "k")
        assert "Signal to 2 processes" in p.text
        await p.press("enter")
        assert len(sent) == 2 and {number for _, number in sent} == {15}
        assert "sent SIGTERM" in p.text
        await p.press("U", "f9", "down", "enter")
        assert "no right to signal" in p.text and sent[-1][1] == 9

    play(script, (120, 40), actions={"signal": kill})


def test_what_is_not_handed_in_is_said():
    async def script(p):
        await p.slices(1)
        for key in ("k", "f7", "f8", "a", "W"):
            await p.press(key)
            assert "not possible here" in p.text, key

    play(script)


def test_h_turns_threads_on_and_off():
    asked = []

    async def script(p):
        await p.slices(1)
        await p.press("H")
        assert asked == [True] and "threads are shown" in p.text
        await p.press("H")
        assert asked == [True, False]

    play(script, actions={"threads": lambda on: asked.append(on) or ""})
