import re
from pathlib import Path

import pytest

from pmutop.errors import BadInput
from pmutop.tui import settings
from pmutop.tui.columns import BY_NAME, COLUMNS
from pmutop.tui.keys import KEYS, VIM_KEYS


def test_what_is_saved_is_loaded_again(tmp_path):
    path = tmp_path / "new" / "screen.toml"
    kept = {"columns": list(BY_NAME)[3:], "sort": "LABEL", "tree": True, "kernel": False}
    settings.save(path, kept)
    assert settings.load(path) == (kept, "")
    settings.save(path, {"sort": "CPU%"})
    assert settings.load(path) == (kept | {"sort": "CPU%"}, "")
    assert [file.name for file in path.parent.iterdir()] == ["screen.toml"], "nothing is left beside it"


def test_no_file_is_no_settings(tmp_path):
    assert settings.load(tmp_path / "none.toml") == ({}, "")


@pytest.mark.parametrize(
    "text, names",
    [
        ("columns = [x]", "line 2"),
        ("colour = true", "colour"),
        ("tree = 1", "tree must be of type bool"),
        ("refresh = true", "refresh must be of type float"),
        ('columns = ["PID", "XYZ"]', "XYZ"),
        ('sort = "XYZ"', "XYZ"),
    ],
)
def test_what_cannot_be_used_is_left_aside_and_said(tmp_path, text, names):
    path = tmp_path / "screen.toml"
    path.write_text("vim = true\n" + text)
    kept, said = settings.load(path)
    assert kept == ({} if "line" in names else {"vim": True})
    assert names in said and str(path) in said and "\n" not in said


def test_a_file_that_cannot_be_read_again_is_not_written_over(tmp_path):
    path = tmp_path / "screen.toml"
    for text in ("columns = [x]", "[later]\nversion = 2\n"):
        path.write_text(text)
        with pytest.raises(BadInput):
            settings.save(path, {"tree": True})
        assert path.read_text() == text


def test_settings_of_another_version_stay(tmp_path):
    path = tmp_path / "screen.toml"
    path.write_text('colour = "blue"\n')
    settings.save(path, {"tree": True})
    assert path.read_text() == 'colour = "blue"\ntree = true\n'


def test_a_whole_number_is_a_refresh(tmp_path):
    path = tmp_path / "screen.toml"
    path.write_text("refresh = 2\nvim = true\n")
    assert settings.load(path) == ({"refresh": 2, "vim": True}, "")


def test_the_page_of_the_screen_lists_every_key_column_and_setting():
    """docs/screen.md against the tables that the program is made of: nothing missing, nothing too many, word for word."""
    page = (Path(__file__).parents[2] / "docs" / "screen.md").read_text()

    def table(title):
        section = page[page.index(f"## {title}") :].partition("\n\n## ")[0]
        rows = re.findall(r"^\| (`.*`) \| (.*) \|$", section, re.MULTILINE)
        return {name.replace("`", ""): words for name, words in rows}

    assert table("Keys") == {key.shown: key.help for key in KEYS}
    assert table("Columns") == {column.name: column.help for column in COLUMNS}
    assert table("Settings") == {name: words for name, (_, words) in settings.KNOWN.items()}
    for key, action in VIM_KEYS.items():
        assert f"`{key}` {action}" in page
