"""The wide CSV codec and the perf stat readers: what is read, and how what is wrong is named."""

import io
import os

import numpy as np
import pytest

from pmutop.errors import BadInput
from pmutop.wide import (
    COUNTED,
    NOT_COUNTED,
    NOT_SUPPORTED,
    Table,
    read_table,
    read_tables,
    read_wide,
    write_atomically,
    write_wide,
)

GOOD = "time,run,label,cycles,instructions\n0.4,a,P_CPU,100,50\n0.8,a,P_CPU,,70\n1.2,b,N_CPU,90.5,0\n"


def file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_an_empty_cell_is_missing_and_a_zero_is_a_zero(tmp_path):
    table = read_wide(file(tmp_path, GOOD))
    assert table.events == ("cycles", "instructions")
    assert np.isnan(table.values[1, 0]) and table.values[2, 1] == 0
    assert table.run.tolist() == ["a", "a", "b"] and table.time.tolist() == [0.4, 0.8, 1.2]
    assert table.type is None and table.path is None


def test_written_bytes_are_the_bytes_read(tmp_path):
    out = io.StringIO()
    write_wide(read_wide(file(tmp_path, GOOD)), out)
    assert out.getvalue() == GOOD


def test_any_float_survives_the_round_trip(tmp_path):
    rng = np.random.default_rng(1)
    values = np.exp(rng.normal(0, 20, (50, 3)))
    values[values > 2**62] = 2**62 + 1024
    out = io.StringIO()
    write_wide(Table(("a", "b, with comma", 'c"quoted"'), values), out)
    again = read_wide(file(tmp_path, out.getvalue()))
    assert again.events == ("a", "b, with comma", 'c"quoted"')
    assert np.array_equal(again.values, values)


@pytest.mark.parametrize(
    "text, place",
    [
        ("", "t.csv: empty"),
        ("\n\n", "t.csv: empty"),
        ("cycles,instructions\n", "no rows"),
        ("run,label\na,b\n", "t.csv:1: no event"),
        ("cycles,cycles\n1,2\n", "t.csv:1: column cycles twice"),
        ("cycles,,x\n1,2,3\n", "t.csv:1: column 2"),
        ("1,2\n3,4\n", "t.csv:1: 1 where"),
        ("a,b\n1,2\n3\n", "t.csv:3: 1 cells"),
        ("a,b\n1,2\n3,x\n", "t.csv:3: b: 'x'"),
        ("a,b\n1,nan\n", "t.csv:2: b: nan"),
        ("a,b\n1,inf\n", "t.csv:2: b: inf"),
        ("a,b\n1,2\n\n-1,2\n", "t.csv:4: a: negative"),
        ("a,b\n1,9223372036854775808\n", "t.csv:2: b: 9223372036854775808 is above"),
        ("time,a\nnoon,1\n", "t.csv:2: time: 'noon'"),
        ('a,b\n1,"2\n', "t.csv:3: unexpected end"),
        (b"a,b\n1,2\n\xff\xfe,3\n", "t.csv:3: not text"),
        (b"a,b\n1,2\n\x00,3\n", "t.csv:3: not text"),
    ],
)
def test_bad_input_names_file_and_line(tmp_path, text, place):
    with pytest.raises(BadInput) as caught:
        read_wide(file(tmp_path, text))
    assert place in str(caught.value)
    assert caught.value.exit_code == 4


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        read_tables([tmp_path / "none.csv"])


PERF = """# started on Sat Nov 21 03:17:36 2026

     1.000204013,1000,,instructions,400000000,100.00,0.50,insn per cycle
     1.000204013,2000,,cycles,300000000,75.00,,
     1.000204013,<not counted>,,cpu/event=0x3c,umask=0x1/,0,0.00,,
     2.000304013,<not supported>,,instructions,0,100.00,,
     2.000304013,2,,cyc
     2.000304013,0,,cycles,300000000,75.00,,
     2.000304013,12.5,msec,task-clock,12500000,100.00,,
"""


def test_perf_stat_csv(tmp_path):
    table = read_table(file(tmp_path, PERF, "perf.txt"))
    assert table.events == ("instructions", "cycles", "cpu/event=0x3c,umask=0x1/", "task-clock")
    assert table.values[0, :2].tolist() == [1000, 2000]
    assert table.marks.tolist() == [
        [COUNTED, COUNTED, NOT_COUNTED, NOT_COUNTED],
        [NOT_SUPPORTED, COUNTED, NOT_COUNTED, COUNTED],
    ]
    assert np.isnan(table.values[1, 0]) and table.values[1, 1] == 0 and table.running[1, 1] == 0.75
    assert [line for line, _ in table.problems] == [7]


def test_perf_stat_per_cpu_is_summed_unless_one_cpu_did_not_count(tmp_path):
    text = "".join(
        f"1.000204013,CPU{cpu},{count},,cycles,400,{share},,\n2.000204013,CPU{cpu},{cpu},,cycles,400,100.00,,\n"
        for cpu, count, share in ((0, 5, "100.00"), (1, "<not counted>", "0.00"), (2, 7, "50.00"))
    )
    table = read_table(file(tmp_path, text))
    assert np.isnan(table.values[0, 0]) and table.values[1, 0] == 3 and not table.problems


def test_perf_stat_json(tmp_path):
    line = '{{"interval" : {}, "counter-value" : "{}", "unit" : "", "event" : "{}", "event-runtime" : 1, "pcnt-running" : {}}}\n'
    text = line.format(1.0, "1000.000000", "cycles", 100.0) + line.format(1.0, "<not counted>", "faults", 0.0)
    text += '{"interval" : 2.0, "counter-va\n' + line.format(2.0, "7.000000", "faults", 50.0)
    table = read_table(file(tmp_path, text, "p.json"))
    assert table.events == ("cycles", "faults") and table.time.tolist() == [1.0, 2.0]
    assert table.values[0, 0] == 1000 and np.isnan(table.values[0, 1]) and table.running[1, 1] == 0.5
    assert [line for line, _ in table.problems] == [3]


def test_perf_output_that_counted_nothing_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="no counted value"):
        read_table(file(tmp_path, "1.000204013,<not counted>,,cycles,0,0.00,,\n"))


def test_folders_are_read_recursively_by_name(tmp_path):
    (tmp_path / "deep").mkdir()
    file(tmp_path, GOOD, "b.csv")
    file(tmp_path / "deep", GOOD, "a.csv")
    file(tmp_path, "not a table", "README.md")
    assert [os.path.basename(table.source) for table in read_tables([tmp_path])] == ["b.csv", "a.csv"]
    with pytest.raises(BadInput, match="no table in this folder"):
        (tmp_path / "empty").mkdir()
        read_tables([tmp_path / "empty"])


def test_nothing_is_left_half_written(tmp_path):
    path = file(tmp_path, "old")
    with pytest.raises(RuntimeError), write_atomically(path) as stream:
        stream.write("half")
        raise RuntimeError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["t.csv"]
    with write_atomically(path) as stream:
        stream.write("new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["t.csv"]


def test_a_device_is_not_replaced():
    with write_atomically("/dev/null") as stream:
        stream.write("gone")
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null")


def test_rows_and_columns_of_a_table(tmp_path):
    table = read_wide(file(tmp_path, GOOD)).rows(slice(0, 2)).only(["instructions"])
    assert table.values.tolist() == [[50], [70]] and table.label.tolist() == ["P_CPU", "P_CPU"]
    with pytest.raises(BadInput, match="no event nothing"):
        table.column("nothing")
