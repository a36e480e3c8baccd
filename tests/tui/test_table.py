"""The process table: which rows, in which order, what stands in them."""

import asyncio
import re
from itertools import pairwise

import pytest
from moments import World
from playing import SIZES, play

from pmutop.tui.columns import BY_NAME, COLUMNS, trouble
from pmutop.tui.fold import name_of
from pmutop.tui.history import Row


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
        assert len(p.state.order) == 60 - hidden_kernel_threads(p)
        await p.press("u", "down", "enter")
        assert {p.state.row(i).task.user for i in range(len(p.state.order))} == {"postgres"}

    play(script, (120, 40))


def test_sort_menu_sorts_by_any_column():
    async def script(p):
        await p.slices(2)
        await p.press("K")
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


def hidden_kernel_threads(p):
    return sum(task.kernel for task in p.state.moment.tasks) - len(p.state.kernel_busy)


def shown(p):
    return [p.state.row(place) for place in range(len(p.state.order))]


def test_kernel_threads_show_only_where_they_use_a_cpu_or_are_asked_for():
    kept = []

    async def script(p):
        kernel = [row for row, task in enumerate(p.world.tasks) if task.kernel]
        p.world.base[kernel] = p.world.cpu[kernel] = 0.0
        p.world.base[kernel[0]] = p.world.cpu[kernel[0]] = 40.0
        p.world.busy = p.world.base.nonzero()[0]
        text = await p.slices(10)
        assert [row.index for row in shown(p) if row.task.kernel] == [kernel[0]]
        assert f"{len(kernel) - 1} kernel threads hidden (K)" in text and "60 tasks" in text
        await p.press("backslash", *"kworker", "enter")
        assert len(shown(p)) == len(kernel), "who filters for them sees them"
        await p.press("escape", "K")
        assert len(shown(p)) == 60 and "hidden (K)" not in p.text and kept[-1]["kernel"] is True
        await p.press("K")
        assert len(shown(p)) == 60 - len(kernel) + 1 and kept[-1]["kernel"] is False

    play(script, (120, 40), keep=kept.append)


def test_who_has_gone_stands_behind_the_busy():
    async def script(p):
        await p.slices(3)
        await p.slices(1, exited=(0, 1, 2))
        p.state.moment.cpu[:3] = 0
        await p.slices(1)
        last_busy = max(
            place
            for place, row in enumerate(shown(p))
            if float(row.moment.cpu[row.index]) > 0 and not row.gone
        )
        gone = [place for place, row in enumerate(shown(p)) if row.moment is not p.state.moment]
        assert len(gone) == 3 and min(gone) > last_busy

    play(script, (120, 40))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_rows_fold_under_their_cgroup_with_sums(size):
    async def script(p):
        await p.slices(3)
        await p.press("K", "c", "home")
        heads = shown(p)
        cgroups = {task.cgroup for task in p.world.tasks}
        assert {row.task.cmdline.partition(": ")[2] for row in heads} == cgroups and len(heads) == len(
            cgroups
        )
        moment = p.state.moment
        for head in heads:
            rows = [i for i, task in enumerate(moment.tasks) if task.cgroup == head.task.cgroup]
            assert float(head.moment.cpu[head.index]) == pytest.approx(float(moment.cpu[rows].sum()))
            assert head.task.pid == -len(rows)
        first = heads[0]
        assert f"+{-first.task.pid}" in p.text and first.task.comm.partition(".")[0] in p.text
        await p.press("enter")
        rows = shown(p)
        assert len(rows) == len(heads) - first.task.pid and f"{first.task.pid}" in p.text
        assert {row.task.cgroup for row in rows[1 : 1 - first.task.pid]} == {first.task.cgroup}
        await p.press("down", "minus")
        assert len(shown(p)) == len(heads) and p.state.current().task.ref == first.task.ref
        await p.press("plus", "down")
        assert p.state.current().task.cgroup == first.task.cgroup and p.state.current().task.ref > 0
        await p.press("c")
        assert len(shown(p)) == 60 and p.state.current().task.ref > 0

    play(script, size)


def test_groups_are_sorted_by_the_column_and_show_their_worst_row():
    async def script(p):
        await p.slices(3)
        await p.press("K", "c")
        for name in ("CPU%", "RES", "COMMAND", "LABEL", "THR", "PID"):
            column = BY_NAME[name]
            p.state.sort = name
            await p.slices(1)
            keys = [column.key(p.state, row) for row in shown(p)]
            if name != "CPU%":  # by bands
                assert keys == sorted(keys, reverse=column.descending), name
        worst = max(trouble(p.state, Row(p.state.moment, i)) for i in range(60))
        assert max(int(trouble(p.state, row)) for row in shown(p)) == int(worst)
        await p.press("I")
        await p.press("n")
        row = p.state.current()
        assert row.task.ref == p.state.found[0].task.ref > 0, "n unfolds the group of a finding"

    play(script, (120, 40))


def test_nothing_is_sent_to_a_group():
    sent = []

    async def script(p):
        await p.slices(3)
        await p.press("c", "home", "k", "escape", "f8", "a", "escape", "space", "home", "f7")
        assert sent == [] and p.state.menu is None

    play(
        script,
        actions={
            name: lambda *arguments: sent.append(arguments) or "" for name in ("signal", "renice", "affinity")
        },
    )


def test_a_container_is_named_by_its_first_digits():
    path = "/kubepods.slice/pod1.slice/cri-containerd-" + "0123456789abcdef" * 4 + ".scope"
    assert name_of(path) == "cri-containerd-0123456789ab.scope"
    assert name_of("/system.slice/nginx.service") == "nginx.service" and name_of("/") == "/"
