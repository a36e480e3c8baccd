import subprocess
import sys
from pathlib import Path

import pytest

from pmutop._switches import SwitchError, Switches
from pmutop.events import generic

LOADS = Path(__file__).with_name("loads.py")


@pytest.fixture(scope="session")
def may_sample():
    """Skips, with the kernel's own reason, where context switches may not be sampled."""
    try:
        Switches([generic("page-faults")]).close()
    except SwitchError as error:
        pytest.skip(f"the system reader cannot be opened here: {error}")


@pytest.fixture
def load():
    """load(name, seconds) starts one of loads.py; what still runs at the end is killed."""
    started = []

    def start(name, seconds, **options):
        process = subprocess.Popen([sys.executable, "-S", str(LOADS), name, str(seconds)], **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            process.wait()
