"""What the screen keeps between runs: ~/.config/pmutop/screen.toml (columns, order, vim keys, ASCII, mouse)."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pmutop.errors import BadInput
from pmutop.tui.columns import BY_NAME
from pmutop.tui.state import State

#: Name -> the type it must have, and what it is; anything else in the file is an error that names the line to mend.
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


def default_path() -> Path:
    """Where the settings live; platformdirs is imported here because the first frame need not wait for it."""
    from platformdirs import user_config_path

    return user_config_path("pmutop") / "screen.toml"


def load(path: Path) -> dict:
    """The settings of a file, {} if there is none; BadInput names what is wrong in it."""
    import tomllib

    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}", "correct or remove the file") from error
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}", "correct or remove the file") from error
    for name, value in settings.items():
        if name not in KNOWN:
            raise BadInput(f"{path}: '{name}' is not a setting", f"settings are {', '.join(KNOWN)}")
        wanted = KNOWN[name][0]
        if not isinstance(value, (int, float) if wanted is float else wanted) or (
            wanted is float and isinstance(value, bool)
        ):
            raise BadInput(f"{path}: {name} must be of type {wanted.__name__}", KNOWN[name][1])
    names = settings.get("columns", []) + [settings.get("sort", "PID")]
    for name in names:
        if name not in BY_NAME:
            raise BadInput(f"{path}: there is no column '{name}'", f"columns are {', '.join(BY_NAME)}")
    return settings


def save(path: Path, settings: dict) -> None:
    """Write `settings` over those of the file, whole or not at all."""
    kept = {**load(path), **settings} if path.exists() else dict(settings)
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
