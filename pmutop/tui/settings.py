"""What the screen keeps between runs: ~/.config/pmutop/screen.toml (columns, order, vim keys, ASCII, mouse)."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pmutop.errors import BadInput
from pmutop.tui.columns import BY_NAME
from pmutop.tui.state import State

#: Name -> the type it must have, and what it is; anything else in the file is left aside, and said.
KNOWN = {
    "columns": (list, "names of the columns, from left to right"),
    "sort": (str, "column to sort by"),
    "tree": (bool, "processes under their parents"),
    "grouped": (bool, "rows under their cgroup"),
    "kernel": (bool, "show kernel threads that use no CPU, too"),
    "vim": (bool, "vim keys: j k g G, x to signal"),
    "ascii": (bool, "draw with ASCII only"),
    "mouse": (bool, "let the screen have the mouse"),
    "refresh": (float, "least seconds between two frames"),
}


SIMPLE = (str, bool, int, float, list)


def default_path() -> Path:
    """Where the settings live; platformdirs is imported here because the first frame need not wait for it."""
    from platformdirs import user_config_path

    return user_config_path("pmutop") / "screen.toml"


def load(path: Path) -> tuple[dict, str]:
    """(the settings of a file that can be used, what is wrong with the rest in one line or ""). A screen that is needed now
    does not stay away because of a file: what another version wrote, or a hand slipped in, is left aside and said."""
    try:
        found = parsed(path)
    except BadInput as error:
        return {}, f"{error}: not used"
    settings = {name: value for name, value in found.items() if not fault(name, value)}
    faults = [fault(name, found[name]) for name in found if name not in settings]
    return settings, f"{path}: {'; '.join(faults)}: not used" if faults else ""


def parsed(path: Path) -> dict:
    """What stands in the file, {} if there is none; raises BadInput where it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path}: {error}", "correct or remove the file") from error


def fault(name: str, value: object) -> str:
    """What is wrong with a setting, "" if nothing is."""
    if name not in KNOWN:
        return f"'{name}' is not a setting"
    wanted = KNOWN[name][0]
    right = (int, float) if wanted is float else wanted
    if not isinstance(value, right) or (wanted is float and isinstance(value, bool)):
        return f"{name} must be of type {wanted.__name__}"
    named = {"columns": value, "sort": [value]}.get(name, [])
    strange = [one for one in named if one not in BY_NAME]
    return f"there is no column '{strange[0]}'" if strange else ""


def save(path: Path, settings: dict) -> None:
    """Write `settings` over those of the file, whole or not at all; what we do not know stays in it. Raises BadInput where
    the file cannot be read, so that nothing of it is lost."""
    kept = parsed(path) | settings
    if any(not isinstance(value, SIMPLE) for value in kept.values()):
        raise BadInput(
            f"{path} holds more than pmutop writes: it is left as it is", "take the rest out of it"
        )
    # For the types that are kept here, a JSON value is a TOML value.
    text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in kept.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def apply(values: dict, state: State) -> None:
    """Start the screen as it was left: those of the settings that are the state's."""
    for name, value in values.items():
        if hasattr(state, name):
            setattr(state, name, value)
