"""The process table: which rows, in which order, what stands in them."""

import asyncio
import re
from itertools import pairwise

import pytest
from moments import World
from playing import SIZES, play

from pmutop.tui.columns import COLUMNS


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
            "b",
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
