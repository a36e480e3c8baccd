import math
import sys
import unicodedata

import pytest

from pmutop import units

NASTY = {
    "escape": "a\x1b[31mred\x1b]0;title\x07b",
    "c1": "\x9b31m\x90q\x9c",
    "newline": "one\ntwo\r\nthree\ttab",
    "nul and bell": "\0\a\b\x7f",
    "bidi": "user\u202etxt.exe\u2066\u2069\u200f",
    "zero width": "in\u200bvisi\u200dble\ufeff",
    "stacked": "Z\u0351\u036b\u0343a\u0317\u0345l",
    "surrogate": "bad\udcff\ud800name",
    "private": "\ue000\U000f0000",
    "unassigned": "\u0378\U000e0fff",
    "tags": "flag\U0001f3f4\U000e0067\U000e007f",
    "variation": "\u2764\ufe0f",
    "separators": "a\u2028b\u2029c",
    "hangul fillers": "\u115f\u1160\u3164\uffa0",
    "markup": "[bold red]x[/] [link=http://x]y",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_nothing_that_steers_a_terminal_survives(text):
    clean = units.clean_text(text)
    clean.encode("utf-8")  # lone surrogates would raise
    assert clean.isprintable()
    assert all(unicodedata.category(c)[0] not in "CM" for c in clean)
    assert len(clean) == len(text), "each character is replaced by one that shows, none vanishes"


def test_harmless_text_is_left_alone():
    for text in (
        "redis-server *:6379",
        "[kworker/0:1-events]",
        "Größe ñandú",
        "数据库 サーバ",
        "מסמך",
        "🔥 hot",
    ):
        assert units.clean_text(text) == text


def test_width_agrees_with_an_independent_table():
    """The terminal library's own table is the witness, over every character there is that cleaning lets through."""
    cell_len = pytest.importorskip("rich.cells").cell_len
    wrong = [
        hex(code)
        for code in range(32, sys.maxunicode + 1)
        if units.clean_text(chr(code)) == chr(code) and cell_len(chr(code)) != units.width(chr(code))
    ]
    assert not wrong, f"{len(wrong)}: {wrong[:20]}"


@pytest.mark.parametrize("cells", range(12))
@pytest.mark.parametrize("text", ["", "plain", "数据库サーバ", "a数b据", "x" * 40])
@pytest.mark.parametrize("right", [False, True])
def test_fit_is_exact(text, cells, right):
    fitted = units.fit(text, cells, right)
    assert units.width(fitted) == cells
    if units.width(text) <= cells:
        assert fitted.strip() == text


@pytest.mark.parametrize(
    "write, widest",
    [
        (units.count, 5),
        (units.size, 5),
        (units.percent, 5),
        (units.ratio, 4),
        (units.factor, 5),
        (units.duration, 6),
    ],
)
def test_numbers_never_outgrow_their_column(write, widest):
    for exponent in range(-7, 16):
        for digits in (1, 1.005, 4.996, 9.949, 9.951, 9.994, 9.996, 9.9999):
            text = write(digits * 10.0**exponent)
            assert len(text) <= widest and text.isascii(), (digits, exponent, text)
    for nothing in (None, math.nan, math.inf):
        assert write(nothing) in ("-", "")


@pytest.mark.parametrize(
    "text, expected",
    [
        (units.count(0), "0"),
        (units.count(7.5), "7.5"),
        (units.count(999.4), "999"),
        (units.count(999.6), "1k"),
        (units.count(1234), "1.23k"),
        (units.count(45.6e6), "45.6M"),
        (units.size(512), "512"),
        (units.size(1536), "1.5K"),
        (units.size(3 << 30), "3G"),
        (units.percent(99.94), "99.9"),
        (units.percent(99.96), "100"),
        (units.ratio(0.853), "0.85"),
        (units.factor(2.14), "x2.1"),
        (units.share(0.874), "87%"),
        (units.duration(12e-6), "12us"),
        (units.duration(0.4), "400ms"),
        (units.duration(62), "1:02"),
        (units.duration(3600 * 12 + 120), "12:02h"),
        (units.duration(86400 * 3.2), "3.2d"),
    ],
)
def test_numbers_read_as_people_write_them(text, expected):
    assert text == expected


def test_ascii_keeps_the_width():
    for text in ("▁▃█ 数据 … ×2", "─│┌", "plain"):
        plain = units.as_ascii(text)
        assert plain.isascii() and len(plain) == units.width(text)


def test_without_a_terminal_library():
    """The log uses this module: it must not load the screen's libraries."""
    import subprocess

    code = "import pmutop.units, sys; sys.exit(any(m.split('.')[0] in ('textual', 'rich', 'numpy') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
