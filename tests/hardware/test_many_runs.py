"""Many runs and how far to trust a counter, on the emulated PMU (checks of inside/manyruns.py)."""

import pytest
from test_guest import booted, checks_of, passed

pytestmark = [pytest.mark.hardware, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def ran():
    return booted("manyruns", cpus=1, icount=True)


@pytest.mark.parametrize("name", checks_of("manyruns"))
def test_many_runs(ran, name):
    passed(ran, name)
