"""The control: the same guest without a PMU."""

from commands import pmutop

from pmutop.sources import budget
from pmutop.topology import Machine


def check_no_core_pmu_is_found():
    machine = Machine.read()
    assert machine.core_pmus == () and budget.free_counters(machine) == {} and budget.own_ipc() is None


def check_a_training_on_it_is_refused_in_one_line():
    done = pmutop("train", "fingerprints", "--tier", "hardware", "--yes", status=1)
    assert len(done.stderr.splitlines()) == 1 and "no processor PMU here to train on" in done.stderr, (
        done.stderr
    )
