"""A file imports only from lower floors or its own folder; folders of one floor are strangers (DESIGN, 'The house')."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "pmutop"

FLOOR_OF = {
    "cli": 5,
    "__main__": 6,
    "tui": 4,
    "sinks": 4,
    "training": 4,
    "sources": 3,
    "pipeline": 3,
    "analysis": 2,
}
NOUNS = 1  # every other module of the package root
NATIVE = 0  # pmutop._name, built from ext/


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor_of(room: str) -> int:
    if room.startswith("_") and room not in ("__main__", "__init__"):
        return NATIVE
    return FLOOR_OF.get(room, NOUNS)


def imported_rooms(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = [node.module or ""]
            if node.module == "pmutop":
                names = [f"pmutop.{alias.name}" for alias in node.names if not alias.name.startswith("__")]
        else:
            continue
        for name in names:
            if name.startswith("pmutop."):
                yield node.lineno, name.split(".")[1]


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_go_down(path):
    here = room_of(path)
    for line, room in imported_rooms(path):
        same_room = room == here or floor_of(room) == floor_of(here) == NOUNS
        assert same_room or floor_of(room) < floor_of(here), f"{path}:{line}: {here} may not import {room}"


WATCHED = """
import runpy, sys
try:
    runpy.run_module("pmutop", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
print("libcrypto" in open("/proc/self/maps").read(), file=sys.stderr)
"""


@pytest.mark.live
@pytest.mark.parametrize("command", [("log", "--slices", "1"), ("record", "slices.pmu", "--slices", "1")])
def test_long_running_commands_do_not_carry_openssl(command, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )
    assert done.stderr.splitlines()[-1] == "False", done.stderr
