"""What the documentation says is what the program does: commands, flags, columns of the contract."""

import re
from pathlib import Path

import pytest

from pmutop.cli import COMMANDS, command_module, overview, parser_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def parser(name):
    return parser_of(name, command_module(name))


def test_the_first_screen_has_two_commands_of_one_line():
    blocks = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert len(blocks) == 2 and all("\n" not in block for block in blocks)
    assert blocks[0].endswith("bin/pmutop") and "pytest" in blocks[1]
    assert README.index(blocks[1]) < 2500


def test_ci_runs_the_readmes_test_command():
    assert "<!-- test command -->" in README and "<!-- test command -->" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_file_a_line_and_help(name):
    text = parser(name).format_help()
    assert COMMANDS[name] and len(text.splitlines()) > 3
    assert name == "screen" or name in overview()
    for action in parser(name)._actions:
        assert action.help, f"{name} {action.option_strings} has no help"


def test_every_flag_in_the_documentation_exists():
    known = {flag for name in COMMANDS for action in parser(name)._actions for flag in action.option_strings}
    known |= {"--help", "--version"}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"```sh\n.*?```", "", path.read_text(), flags=re.DOTALL)
        for line in re.findall(r"`(pmutop[^`]*)`", text):
            for flag in re.findall(r"(?<!\w)--[a-z][\w-]*", line):
                assert flag in known, f"{path.name}: {flag} in `{line}`"


def test_every_command_in_the_documentation_exists():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for word in re.findall(r"`pmutop ([a-z]+)", path.read_text()):
            assert word in COMMANDS, f"{path.name}: pmutop {word}"


def test_no_page_holds_a_placeholder():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        assert not re.search(r"\b(TODO|FIXME|XXX|TABLES|SCORES|MACHINE)\b", path.read_text()), path.name
