"""The real app on made-up Moments: every key, at three sizes, through Textual's Pilot."""

import asyncio
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from moments import ADVICE, NOTES, World
from textual import events
from textual.keys import _character_to_key

from pmutop import units
from pmutop.moment import Rank
from pmutop.tui.app import PmutopApp
from pmutop.tui.columns import COLUMNS
from pmutop.tui.keys import KEYS, VIM_KEYS
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
    """Counts the keys that were answered."""

    answered = 0

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
            self.app.offer(replace(self.world.moment(self.number, **how), ranks=ranks))
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


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_table_shows_the_columns_of_the_issue(size):
    async def script(p):
        text = await p.slices(3)
        head = next(line for line in text.splitlines() if "COMMAND" in line)
        for name in ("PID", "USER", "CPU%", "WAIT%", "LABEL", "INTERF", "EVENTS", "COMMAND"):
            assert name in head
        assert ("IPC" in head) is False, "no instructions are counted: no empty column"
        assert re.search(r"P_OS_\w+ +\d+%", text) and "core x2.1" in text and "unknown" in text

    play(script, size)


def test_ipc_column_where_instructions_are_counted():
    async def script(p):
        assert " IPC" in await p.slices(1)

    play(script, (120, 40), World(60, ipc=True))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_hostile_names_stay_text(size):
    """Control characters, markup, bidi and wide characters in names, users, cgroups, host: the picture stays whole."""

    async def script(p):
        text = await p.slices(3)
        assert ("[bold]x[" in text or size[0] == 80) and "\x1b" not in text
        for key in (
            "enter",
            "escape",
            "w",
            "escape",
            "u",
            "escape",
            "t",
            "F",
            "k",
            "escape",
            "n",
            "end",
            "slash",
            "x",
            "enter",
        ):
            await p.press(key)
            assert p.text  # the property checks width and printability
        await p.slices(2, exited=(3, 5))

    play(
        script,
        size,
        World(60, hostile=True),
        actions={"signal": lambda task, number: f"no such task {task.comm}"},
    )


@pytest.mark.parametrize("rows", [0, 1, 5, 5000])
def test_few_and_many_processes(rows):
    async def script(p):
        await p.slices(2)
        await p.press("end", "up", "pageup", "home", "t", "enter", "escape", "N")
        await p.slices(1)
        assert f"{rows} tasks" in p.text

    play(script, (80, 24), World(rows))


def test_details_explain_the_verdict():
    async def script(p):
        await p.slices(4)
        await p.press("T", "home", "n", "enter")
        text = p.text
        for words in ("evidence", "minor-faults", "61k", "120", "508 times", "because", "minor-faults > 5 200", "suspect",
                      "cannot be seen", "labels", "base-software (software)", "since"):  # fmt: skip
            assert words in text, words

    play(script, (120, 50))


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


def test_search_filter_user_and_their_undoing():
    async def script(p):
        await p.slices(3)
        await p.press("slash", *"gzip")
        assert "Search: gzip" in p.text
        assert p.state.current().task.comm == "gzip"
        first = p.state.cursor
        await p.press("f3")
        assert p.state.cursor > first and p.state.current().task.comm == "gzip"
        await p.press("enter", "backslash", *"sshd")
        assert {p.state.row(i).task.comm for i in range(len(p.state.order))} == {"sshd"}
        await p.press("enter")
        assert "filter 'sshd'" in p.text
        await p.press("escape")
        assert len(p.state.order) == 60
        await p.press("u", "down", "enter")
        assert {p.state.row(i).task.user for i in range(len(p.state.order))} == {"postgres"}

    play(script, (120, 40))


def test_sort_menu_sorts_by_any_column():
    async def script(p):
        await p.slices(2)
        for column in COLUMNS:
            await p.press("f6")
            assert "Sort by" in p.text
            while p.state.menu.choices[p.state.menu.cursor][1] != column.name:
                await p.press(
                    "down"
                    if p.state.menu.cursor < list(dict(p.state.menu.choices)).index(column.name)
                    else "up"
                )
            await p.press("enter")
            assert p.state.sort == column.name
            keys = [column.key(p.state, p.state.row(i)) for i in range(len(p.state.order))]
            if column.name != "CPU%":  # by bands, see below
                assert keys == sorted(keys, reverse=column.descending)
        await p.press("N", "I")
        assert [p.state.row(i).task.pid for i in range(60)] == sorted(
            (t.pid for t in p.world.tasks), reverse=True
        )

    play(script, (120, 40))


def test_rows_do_not_jump():
    """With a CPU use that only jitters, two slices in a row show nearly the same order."""

    async def script(p):
        await p.slices(10)
        moved, before = 0, None
        for _ in range(20):
            await p.slices(1)
            order = [p.state.row(i).task.ref for i in range(len(p.state.order))]
            moved += sum(a != b for a, b in zip(order, before)) if before else 0
            before = order
        exact = [(-p.world.moment(number).cpu).argsort(kind="stable") for number in range(20)]
        jumping = sum((one != two).sum() for one, two in pairwise(exact))
        assert moved < jumping / 3, (moved, jumping)

    play(script, (120, 40))


def test_the_selected_process_stays_under_the_cursor():
    async def script(p):
        await p.slices(3)
        await p.press("down", "down", "down")
        ref = p.state.selected
        for _ in range(10):
            await p.slices(1)
            assert p.state.current().task.ref == ref
        p.state.still_until = 0
        p.world.base[p.world.busy] = p.world.base[p.world.busy][::-1].copy()
        await p.slices(5)
        assert p.state.current().task.ref == ref

    play(script)


def test_exited_processes_stay_a_while_and_leave():
    async def script(p):
        text = await p.slices(1, exited=(0,))
        pid = p.world.tasks[0].pid
        p.world.tasks = p.world.tasks[1:]
        p.world.rows -= 1
        p.world.base, p.world.cpu, p.world.kinds, p.world.sure = (
            a[1:] for a in (p.world.base, p.world.cpu, p.world.kinds, p.world.sure)
        )
        p.world.busy = p.world.base.nonzero()[0]
        await p.slices(2)
        await p.press("N")
        assert re.search(rf"^ +{pid} .*\(gone\)", p.text, re.MULTILINE), text
        await p.slices(30)
        assert not re.search(rf"^ +{pid} ", p.text, re.MULTILINE)

    play(script)


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


def test_labels_need_two_of_three_slices():
    async def script(p):
        import dataclasses

        from pmutop.moment import Label

        def slice_with(name):
            p.number += 1
            base = p.world.moment(p.number)
            label = (Label(name, "", 0.9, "software", "m"),)
            return dataclasses.replace(base, labels={0: label}, reasons={}, interference={})

        shown = []
        for name in ("N_OS_A", "N_OS_A", "P_OS_B", "N_OS_A", "P_OS_B", "P_OS_B", "P_OS_B"):
            p.app.offer(slice_with(name))
            await asyncio.sleep(0.01)
            shown.append(p.state.history.shown(p.world.tasks[0].ref).label)
        assert shown == ["N_OS_A", "N_OS_A", "N_OS_A", "N_OS_A", "P_OS_B", "P_OS_B", "P_OS_B"]

    play(script)


def test_findings_name_the_worst_and_n_goes_there():
    async def script(p):
        text = await p.slices(3)
        line = next(line for line in text.splitlines() if "[n 1/" in line)
        assert re.search(r"\w+ \d+: P_OS_\w+ \d+%.* since \d\d:\d\d:\d\d", line)
        await p.press("n")
        assert p.state.current().task.ref == p.state.found[0].task.ref
        await p.press("n")
        assert p.state.current().task.ref == p.state.found[1].task.ref

    play(script, (120, 40))


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


def test_palette_lists_every_command():
    async def script(p):
        await p.slices(1)
        await p.press("colon")
        assert {value for _, value in p.state.menu.choices} == {row.action for row in KEYS} - {"palette"}
        await p.press(*"who hurts", "enter")
        assert p.state.page == "blame"

    play(script, (120, 40))


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


def test_vim_keys_move():
    async def script(p):
        await p.slices(2)
        await p.press("j", "j", "k")
        assert p.state.cursor == 1
        await p.press("G")
        assert p.state.cursor == 59
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


def test_h_turns_threads_on_and_off():
    asked = []

    async def script(p):
        await p.slices(1)
        await p.press("H")
        assert asked == [True] and "threads are shown" in p.text
        await p.press("H")
        assert asked == [True, False]

    play(script, actions={"threads": lambda on: asked.append(on) or ""})


def test_no_key_means_two_things():
    keys = [key for row in KEYS for key in row.keys]
    assert len(keys) == len(set(keys))
    actions = [row.action for row in KEYS]
    assert len(actions) == len(set(actions))
    assert all(hasattr(PmutopApp, f"do_{action}") for action in actions)


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


def test_ring_is_bounded():
    async def script(p):
        p.state.history.budget = 300_000
        await p.slices(40)
        assert p.state.history.held <= 300_000 and 2 <= len(p.state.history.ring) < 40

    play(script)
