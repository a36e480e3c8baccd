"""Many CPUs: a heat map by socket, node and shared cache, of machines whose topology is faked."""

import re
from dataclasses import replace

import pytest
from machines import FakeRoot, amd_server, arm_server, cloud_vm, intel_server
from moments import World
from playing import SIZES, play

from pmutop.domains import domains
from pmutop.kernelfiles import cpu_ranges


def epyc(folder):
    """Two sockets of 32 cores with two threads each, an L3 per eight cores, a node per socket: 128 CPUs."""
    root = FakeRoot(folder)
    root.put("sys/devices/system/cpu/online", "0-127")
    for node in range(2):
        root.put(
            f"sys/devices/system/node/node{node}/cpulist",
            f"{32 * node}-{32 * node + 31},{64 + 32 * node}-{95 + 32 * node}",
        )
    for number in range(128):
        first = number % 64 // 8 * 8
        shared = f"{first}-{first + 7},{64 + first}-{71 + first}"
        caches = [(1, "Data", "32K", 8, 64, f"{number}"), (3, "Unified", "32768K", 16, 32768, shared)]
        root.cpu(number, number % 64 // 32, number % 64 % 32, f"{number % 64},{number % 64 + 64}", caches)
    return root


def big(folder):
    world = World(60, cpus=128)
    world.header = replace(
        world.header, machine={**world.header.machine, "domains": domains(epyc(folder).folder)}
    )
    return world


def test_domains_of_faked_machines(tmp_path):
    found = domains(epyc(tmp_path / "epyc").folder)
    assert len(found) == 8 and [one["socket"] for one in found] == [0] * 4 + [1] * 4
    assert found[1] == {"socket": 0, "node": 0, "cpus": [*range(8, 16), *range(72, 80)]}
    intel = domains(intel_server(tmp_path / "intel", cores=32).folder)
    assert [(one["socket"], len(one["cpus"])) for one in intel] == [(0, 64), (1, 64)]
    assert [one["cpus"] for one in domains(amd_server(tmp_path / "amd").folder)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    assert [one["cpus"] for one in domains(arm_server(tmp_path / "arm").folder)] == [[0, 1, 2, 3]]
    vm = domains(cloud_vm(tmp_path / "vm").folder)
    assert sorted(cpu for one in vm for cpu in one["cpus"]) == [0, 1, 2] and domains(tmp_path) == []


def test_ranges():
    assert cpu_ranges([0, 1, 2, 64, 66, 67]) == "0-2,64,66-67" and cpu_ranges([5]) == "5"


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_cpu_has_a_cell_in_the_map_and_density_says_how_busy(size, tmp_path):
    async def script(p):
        await p.slices(2)
        moment = p.state.moment
        moment.machine["cpu_busy"][:] = [0.0] * 120 + [10.0, 40.0, 70.0, 100.0, 0.0, 0.0, 0.0, 100.0]
        text = await p.press("o")
        rows = re.findall(r"cpu ([\d,-]+) +\[([ ░▒▓█]+)\]", text)
        for _ in range(6):
            if len(rows) < 8:
                text = await p.press("pagedown")
                rows += [row for row in re.findall(r"cpu ([\d,-]+) +\[([ ░▒▓█]+)\]", text) if row not in rows]
        assert [name for name, _ in rows] == [
            f"{8 * one}-{8 * one + 7},{8 * one + 64}-{8 * one + 71}" for one in range(8)
        ]
        assert all(len(cells) == 16 for _, cells in rows)
        assert rows[-1][1] == " " * 8 + "░▒▓█   █" and not rows[0][1].strip()
        assert "busiest 123: 100%" in text

    play(script, size, big(tmp_path))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_head_and_the_time_line_show_groups_not_128_bars(size, tmp_path):
    async def script(p):
        text = await p.slices(5)
        strip = re.search(r"^cpu \[([ ░▒▓█]+)\|([ ░▒▓█]+)\] +\d+%", text, re.MULTILINE)
        cells = 64 + 3 if size[0] == 200 and 128 + 8 <= 110 else 4
        assert strip and len(strip[1]) == len(strip[2]) == cells
        text = await p.press("y")
        lanes = re.findall(r"^socket (\d), node (\d) cpu ([\d,-]+) +[ ░▒▓█]+ +\d+%", text, re.MULTILINE)
        assert len(lanes) == 8 and lanes[0] == ("0", "0", "0-7,64-71") and lanes[-1][0] == "1"
        assert await p.press("escape")

    play(script, size, big(tmp_path))


def test_a_wide_screen_has_a_cell_for_each_cpu(tmp_path):
    async def script(p):
        text = await p.slices(2)
        strip = re.search(r"^cpu \[([ ░▒▓█]+)\|([ ░▒▓█]+)\] +\d+%", text, re.MULTILINE)
        assert len(strip[1]) == len(strip[2]) == 64 + 3

    play(script, (300, 80), big(tmp_path))


def test_cpus_that_came_since_the_start_are_shown_without_their_place(tmp_path):
    async def script(p):
        world = p.world
        world.header = replace(world.header, machine={**world.header.machine, "cpus": 130})
        await p.slices(2)
        assert "all CPUs  130 CPUs" in await p.press("o")

    play(script, (200, 50), big(tmp_path))


def test_few_cpus_keep_their_bars_and_have_a_map_too():
    async def script(p):
        assert re.search(r"^cpu [▁-█]{2} \d+%", await p.slices(2), re.MULTILINE)
        assert "all CPUs  2 CPUs" in await p.press("o")

    play(script, (120, 40))


def test_density_remains_in_ascii(tmp_path):
    async def script(p):
        await p.slices(1)
        p.state.moment.machine["cpu_busy"][:] = [10.0, 40.0, 70.0, 100.0] * 32
        assert "[.:%#" in await p.press("o") and p.text.isascii()

    play(script, (120, 40), big(tmp_path), ascii_only=True)
