"""Print completions for a shell, for instance:
pmutop completions bash > ~/.local/share/bash-completion/completions/pmutop
pmutop completions zsh > "${fpath[1]}/_pmutop"
pmutop completions fish > ~/.config/fish/completions/pmutop.fish"""

from __future__ import annotations

import argparse
import shlex

from pmutop.cli import DEFAULT
from pmutop.cli.grammar import Command, Word, commands

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(options: argparse.Namespace) -> int:
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands()), end="")
    return 0


def bash(table: list[Command]) -> str:
    """Words of the command that was typed; where there are none, file names."""
    names = " ".join(command.name for command in table)
    flags = "".join(
        f"    {command.name}) flags={shlex.quote(' '.join(flag for word in command.options for flag in word.flags))}"
        f" words={shlex.quote(' '.join(choice for word in command.positionals for choice in word.choices))} ;;\n"
        for command in table
    )
    values = "".join(
        f'    {"|".join(f"{command.name},{flag}" for flag in word.flags)}) COMPREPLY=($(compgen -W {shlex.quote(" ".join(word.choices))} -- "$cur")); return ;;\n'
        for command in table
        for word in command.options
        if word.choices
    )
    plain = "|".join(
        f"{command.name},{flag}"
        for command in table
        for word in command.options
        if word.metavar and not word.choices
        for flag in word.flags
    )
    return f"""# bash completion for pmutop, made by `pmutop completions bash`
_pmutop() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command=screen flags words i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -- ]] && {{ COMPREPLY=($(compgen -c -- "$cur")); return; }}
  done
  ((COMP_CWORD > 1)) && [[ " {names} " == *" ${{COMP_WORDS[1]}} "* ]] && command=${{COMP_WORDS[1]}}
  case $command,$prev in
{values}    {plain}) return ;;
  esac
  case $command in
{flags}  esac
  ((COMP_CWORD == 1)) && words="$words {names}"
  if [[ $cur == -* ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _pmutop pmutop
"""


def zsh(table: list[Command]) -> str:
    names = "\n".join(f"    {shlex.quote(f'{command.name}:{command.line}')}" for command in table)
    cases = ""
    for command in table:
        words = [zsh_word(word, number) for number, word in enumerate(command.words)]
        if command.name == DEFAULT:
            words.append("'1: :->command'")
        cases += f"    {command.name})\n      _arguments -S " + " \\\n        ".join(words) + "\n      ;;\n"
    return f"""#compdef pmutop
# zsh completion for pmutop, made by `pmutop completions zsh`
_pmutop() {{
  local -a commands
  local state command=screen
  commands=(
{names}
  )
  if (( CURRENT > 2 )) && (( ${{commands[(I)$words[2]:*]}} )); then
    command=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  case $command in
{cases}  esac
  [[ $state == command ]] && _describe command commands
}}
_pmutop "$@"
"""


def zsh_word(word: Word, number: int) -> str:
    text = word.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    action = f"({' '.join(word.choices)})" if word.choices else "_files" if word.takes_file else ""
    values = "".join(f":{metavar.replace(':', chr(92) + ':')}:{action}" for metavar in word.metavar)
    if not word.flags:
        return shlex.quote(f"*:{text}:{action or '_files'}")
    if len(word.flags) == 1:
        return shlex.quote(f"*{word.flags[0]}[{text}]{values}")
    return f"'({' '.join(word.flags)})'{{{','.join(word.flags)}}}{shlex.quote(f'[{text}]{values}')}"


def fish(table: list[Command]) -> str:
    others = " ".join(command.name for command in table if command.name != DEFAULT)
    lines = ["# fish completion for pmutop, made by `pmutop completions fish`"]
    for command in table:
        lines.append(
            f"complete -c pmutop -f -n __fish_use_subcommand -a {command.name} -d {fish_text(command.line)}"
        )
    for command in table:
        seen = f"__fish_seen_subcommand_from {command.name}"
        when = f"not __fish_seen_subcommand_from {others}" if command.name == DEFAULT else seen
        for word in command.words:
            parts = [f"complete -c pmutop -n {fish_text(when)}"]
            parts += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in word.flags]
            parts += ["-x" if word.choices else "-r"] if word.flags and word.metavar else []
            parts += [f"-a {fish_text(' '.join(word.choices))}"] if word.choices else []
            if word.flags or word.choices:
                lines.append(" ".join([*parts, "-d", fish_text(word.help)]))
    return "\n".join(lines) + "\n"


def fish_text(text: str) -> str:
    """fish reads only backslash and quote within single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
