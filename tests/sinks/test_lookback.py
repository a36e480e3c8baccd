"""The past judged again says what was said when it was the present."""

import threading

import numpy as np
import pytest
from making import header
from test_ring import life

from pmutop.pipeline.engine import Engine
from pmutop.sinks import ring as ring_module
from pmutop.sinks.lookback import LookBack
from pmutop.sinks.ring import Ring

COLUMNS = ("cpu", "wait", "ipc", "rss", "nice", "counts", "quality", "threads", "exited")


def both(memory=1 << 20, seconds=1e9):
    """A look-back over a small machine's life, and what was said of each slice when it came."""
    ring, engine = Ring(header(), minutes=seconds / 60, memory=memory), Engine(header(), [])
    said = {}
    for one in life():
        ring.add(one)
        said[one.number] = engine.moment(one)
    return LookBack(ring, lambda: Engine(header(), []).moment), said


@pytest.mark.parametrize("memory", [1, 3000, 1 << 20])
@pytest.mark.parametrize("first, last", [(0, 59), (20, 40), (59, 59), (50, 90)])
def test_slices_are_judged_as_they_were(monkeypatch, memory, first, last):
    monkeypatch.setattr(ring_module, "SEGMENT", 2000)
    back, said = both(memory)
    found = back.moments(first, last)
    assert [moment.number for moment in found] == list(range(first, min(last, 59) + 1))
    for moment in found:
        was = {task.ref: row for row, task in enumerate(said[moment.number].tasks)}
        rows = [was[task.ref] for task in moment.tasks]
        assert len(rows) == len(was) and moment.time == said[moment.number].time
        assert moment.tasks == [said[moment.number].tasks[row] for row in rows]
        for name in COLUMNS:
            np.testing.assert_array_equal(
                getattr(moment, name), getattr(said[moment.number], name)[rows], name
            )


def test_what_the_ring_dropped_is_not_there_and_what_follows_is_whole():
    back, said = both(seconds=8.0)
    oldest = back.ring.oldest
    assert oldest == 59 - 20 and back.moments(0, oldest - 1) == []
    first = back.moments(0, oldest)[0]
    assert first.number == oldest
    row = {task.ref: row for row, task in enumerate(said[oldest].tasks)}
    assert np.nansum(first.cpu) == pytest.approx(np.nansum(said[oldest].cpu)) and len(row) == len(first.tasks)


def test_one_look_at_a_time_and_a_file_that_cannot_be_read_is_no_end(monkeypatch):
    back, _ = both()
    begun, go_on, given = threading.Event(), threading.Event(), []
    whole = back.moments

    def slow(first, last):
        begun.set()
        go_on.wait(10)
        return whole(first, last)

    monkeypatch.setattr(back, "moments", slow)
    assert back.look(3, 5, given.append) and begun.wait(10)
    assert not back.look(6, 7, given.append)
    go_on.set()
    with back.busy:
        pass
    monkeypatch.setattr(back, "moments", lambda first, last: (_ for _ in ()).throw(OSError("gone")))
    done = threading.Event()
    assert back.look(1, 2, lambda moments: (given.append(moments), done.set()))
    assert done.wait(10)
    assert [] in given


def test_a_stretch_is_written_out_as_a_recording_of_its_own(tmp_path):
    from pmutop.recording import Reader

    back, said = both()
    path = str(tmp_path / "part")
    slices, seconds = back.ring.write(path, first=20, last=30)
    reader = Reader(path)
    engine = Engine(reader.header, [])
    moments = {moment.number: moment for moment in engine.moments(reader)}
    assert slices == 11 and seconds == pytest.approx(4.0) and list(moments) == list(range(19, 31))
    for number in range(20, 31):
        assert np.nansum(moments[number].counts) == np.nansum(said[number].counts) > 0
