import pytest

from pmutop.errors import BadInput
from pmutop.tui import settings
from pmutop.tui.columns import BY_NAME


def test_what_is_saved_is_loaded_again(tmp_path):
    path = tmp_path / "new" / "screen.toml"
    kept = {"columns": list(BY_NAME)[3:], "sort": "LABEL", "tree": True, "kernel": False}
    settings.save(path, kept)
    assert settings.load(path) == kept
    settings.save(path, {"sort": "CPU%"})
    assert settings.load(path) == kept | {"sort": "CPU%"}
    assert [file.name for file in path.parent.iterdir()] == ["screen.toml"], "nothing is left beside it"


def test_no_file_is_no_settings(tmp_path):
    assert settings.load(tmp_path / "none.toml") == {}


@pytest.mark.parametrize(
    "text, names",
    [
        ("columns = [x]", "line 1"),
        ("colour = true", "colour"),
        ("tree = 1", "tree must be of type bool"),
        ("refresh = true", "refresh must be of type float"),
        ('columns = ["PID", "XYZ"]', "XYZ"),
        ('sort = "XYZ"', "XYZ"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(tmp_path, text, names):
    path = tmp_path / "screen.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        settings.load(path)
    assert names in str(error.value) and str(path) in str(error.value) and error.value.hint


def test_a_whole_number_is_a_refresh(tmp_path):
    path = tmp_path / "screen.toml"
    path.write_text("refresh = 2\nvim = true\n")
    assert settings.load(path) == {"refresh": 2, "vim": True}
