"""docs/headless.md is complete: every metric, variable, rule word and flag of the headless commands is on it."""

import re
from pathlib import Path

import pytest
from moments import World

from pmutop.cli import COMMANDS
from pmutop.cli.export import LISTEN
from pmutop.sinks.alerts import NUMBERS, TEXTS, Fired, parse_rule, variables
from pmutop.sinks.openmetrics import FAMILIES, Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "headless.md").read_text()
CODED = set(re.findall(r"`([^`\n]+)`", PAGE))


def test_every_family_and_label_is_on_the_page():
    world = World(40)
    metrics = Metrics(world.header)
    metrics.moment(world.moment(1))
    rows = {
        name: row
        for row in PAGE.splitlines()
        if row.startswith("| `pmutop")
        for name in re.findall(r"`(\w+)`", row)
    }
    assert {name for name, *_ in FAMILIES} <= set(rows)
    for name, _, _, _, samples in FAMILIES:
        for _, labels, _ in samples(metrics):
            assert all(label in rows[name] for label in labels), name


def test_every_variable_and_rule_word_is_on_the_page():
    told = variables(Fired(parse_rule("cpu>=1"), 0, 0.0, 0.0), World(3).moment(1))
    assert set(told) <= CODED and {name for name in CODED if name.startswith("PMUTOP_")} <= set(told)
    assert {f"{word}=" for word in TEXTS} | {f"{word}>=" for word in NUMBERS} <= CODED


def test_what_the_page_says_of_defaults_is_so():
    assert f"http://{LISTEN}/metrics" in PAGE


@pytest.mark.parametrize("rule", re.findall(r"--(?:on|when) '([^']+)'", PAGE))
def test_rules_on_the_page_are_rules(rule):
    assert parse_rule(rule).conditions and "flight" in COMMANDS
