"""Completions, manual and service: made from the parsers themselves, whole, and taken by the programs that read them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pmutop.cli import COMMANDS, command_module, is_journal, parser_of, say
from pmutop.cli.completions import bash, fish, zsh
from pmutop.cli.grammar import commands
from pmutop.cli.manual import manual

ROOT = Path(__file__).parent.parent.parent
SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


@pytest.fixture(scope="module")
def table():
    return commands()


def flags_of(name):
    return {
        flag for action in parser_of(name, command_module(name))._actions for flag in action.option_strings
    }


def choices_of(name):
    return {
        str(choice)
        for action in parser_of(name, command_module(name))._actions
        for choice in action.choices or ()
    }


def complete(script, *words):
    """What bash offers for the last of `words`."""
    typed = " ".join(f"'{word}'" for word in ("pmutop", *words))
    code = f'. "{script}"; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _pmutop; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def bash_script(table, tmp_path_factory):
    if not shutil.which("bash"):
        pytest.skip("no bash")
    path = tmp_path_factory.mktemp("bash") / "pmutop"
    path.write_text(bash(table))
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_bash_offers_every_flag_and_choice(bash_script, name):
    assert complete(bash_script, name, "-") == flags_of(name)
    positional = {
        choice
        for a in parser_of(name, command_module(name))._actions
        if not a.option_strings
        for choice in a.choices or ()
    }
    assert complete(bash_script, name, "") == positional


def test_bash_offers_commands_first_and_values_after_their_flag(bash_script):
    assert complete(bash_script, "") == set(COMMANDS)
    assert complete(bash_script, "re") == {name for name in COMMANDS if name.startswith("re")}
    assert complete(bash_script, "--ve") == {"--version"}
    assert complete(bash_script, "log", "--format", "") == {"jsonl", "csv"}
    assert complete(bash_script, "log", "--output", "x") == set(), "left to file names"
    assert "bash" in complete(bash_script, "log", "--", "bas")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_itself_takes_the_script(table, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    path = tmp_path / "_pmutop"
    path.write_text(SHELLS[shell](table))
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


def test_fish_offers_commands_and_flags(table, tmp_path):
    if not shutil.which("fish"):
        pytest.skip("no fish")
    path = tmp_path / "pmutop.fish"
    path.write_text(fish(table))

    def offered(typed):
        code = f"complete -c pmutop -e; source {path}; complete -C '{typed}'"
        done = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True)
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    assert set(COMMANDS) <= offered("pmutop ")
    for name in COMMANDS:
        assert {flag for flag in flags_of(name) if flag.startswith("--")} <= offered(f"pmutop {name} --"), (
            name
        )
    assert offered("pmutop log --format ") == {"jsonl", "csv"}


def test_zsh_defines_the_commands_and_flags(table, tmp_path):
    text = zsh(table)
    for name in COMMANDS:
        part = text.split(f"\n    {name})\n")[1].split(";;")[0]
        for flag in flags_of(name) | choices_of(name):
            assert re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", part), f"{name} {flag}"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_it(shell, table, capsys):
    from pmutop.cli import main

    assert main(["completions", shell]) == 0
    assert capsys.readouterr().out == SHELLS[shell](table)


def test_the_manual_holds_every_command_and_flag(table):
    text = manual(table).replace(r"\-", "-")
    for name in COMMANDS:
        part = re.split(r"^\.S[SH] ", text.split(f"\n.SS {name}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
        for action in parser_of(name, command_module(name))._actions:
            for flag in action.option_strings:
                assert rf"\fB{flag}\fR" in part, f"{name} {flag}"
    assert all(
        line[:1] != "'" and not re.match(r"\.(?![A-Z]{1,2}\b|br|nh|ad)", line) for line in text.splitlines()
    )


def test_groff_formats_the_manual_without_a_word(table):
    if not shutil.which("groff"):
        pytest.skip("no groff")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8"],
        input=manual(table),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == ""
    shown = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
    assert "--rotate-size SIZE" in shown and "EXIT STATUS" in shown


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    text = (ROOT / "docs" / "pmutop.service").read_text()
    path = tmp_path / "pmutop.service"
    path.write_text(text.replace("ExecStart=/usr/local/bin/pmutop", f"ExecStart={sys.executable}"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    assert "pmutop.service" not in done.stderr, done.stderr


def test_what_the_unit_starts_is_a_command_with_these_flags():
    import shlex

    text = (ROOT / "docs" / "pmutop.service").read_text()
    started = re.findall(r"ExecStart=\S+ (.*)", text)
    assert len(started) == 2
    for line in started:
        name, *words = shlex.split(line)
        parser_of(name, command_module(name)).parse_args(words)


def told(code, journal):
    """What the process says on stderr, which is the journal's stream or is not."""
    script = (
        "import os, sys; f = os.fstat(2); os.environ['JOURNAL_STREAM'] = sys.argv[1] or f'{f.st_dev}:{f.st_ino}'\n"
        + code
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "" if journal else "1:2"], capture_output=True, text=True, check=False
    )
    return done.stderr


def test_in_the_journals_stream_each_line_carries_its_priority():
    wrong = "from pmutop.cli import main; main(['replay', '/no\\nsuch\\x1b[31mfile'])"
    assert re.fullmatch(r"<3>pmutop: cannot read /no such·\[31mfile: .*\n", told(wrong, True))
    assert told(wrong, False).startswith("pmutop: cannot read")
    assert told("from pmutop.cli import say; say('pmutop: news')", True) == "<5>pmutop: news\n"


def test_no_stream_no_priority(monkeypatch, capsys):
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    assert not is_journal()
    say("pmutop: news")
    assert capsys.readouterr().err == "pmutop: news\n"
