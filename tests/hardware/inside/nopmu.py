"""The control: the same guest without a PMU."""

from pmutop.sources import budget
from pmutop.topology import Machine


def check_no_core_pmu_is_found():
    machine = Machine.read()
    assert machine.core_pmus == () and budget.free_counters(machine) == {} and budget.own_ipc() is None
