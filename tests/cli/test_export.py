"""`pmutop export` as Prometheus meets it."""

import re
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

pytestmark = pytest.mark.live
PMUTOP = [sys.executable, "-m", "pmutop"]


def test_a_running_export_is_scraped_and_ends_politely():
    process = subprocess.Popen([*PMUTOP, "export", "--listen", ":0"], stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+/metrics", line):
                break
        request = urllib.request.Request(found[0], headers={"Accept": "application/openmetrics-text"})
        slices = 0
        while slices < 3:  # each scrape is whole, also while slices arrive
            with urllib.request.urlopen(request, timeout=10) as answer:
                families = {
                    family.name: family for family in text_string_to_metric_families(answer.read().decode())
                }
            slices = families["pmutop_slices"].samples[0].value
        commands = {sample.labels["command"] for sample in families["pmutop_cpu_seconds"].samples}
        assert any(name.startswith("python") or "pytest" in name for name in commands)
        assert families["pmutop_own_cpu_seconds"].samples[0].value > 0
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()
    assert process.returncode == 143


def test_wrong_addresses_are_told_before_anything_is_opened():
    for address, code in (("nonsense", 2), ("192.0.2.1:9", 1)):
        done = subprocess.run(
            [*PMUTOP, "export", "--listen", address, "--slices", "1"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (
            done.returncode == code
            and done.stderr.splitlines()[-1].startswith("pmutop: ")
            and done.stdout == ""
        )
