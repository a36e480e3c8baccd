"""The loaders of the recorded counters hold what the data's README promises."""

import numpy as np
from recorded import a15, cloudsuite, needs_a15, needs_cloudsuite


@needs_a15
def test_a15_is_106_series_of_nine_programs_with_the_disturbed_two_left_out():
    tables = a15()
    assert len(tables) == 2 * 2 * 3 * 9 - 2
    assert len({table.label[0] for table in tables}) == 9
    assert {table.events[0] for table in tables} == {"CPU_CYCLES"}
    work = [np.median(t.column("INST_RETIRED")) for t in tables
            if t.label[0] == "splash2x.raytrace" and "list1" in t.run[0] and "1800000" in t.run[0]]  # fmt: skip
    assert len(work) == 1


@needs_cloudsuite
def test_cloudsuite_breaks_the_rules_as_often_as_its_readme_says():
    intel = cloudsuite("INTEL")
    more_branches = np.concatenate([t.column("branches") > t.column("instructions") for t in intel])
    assert len(intel) == 8 and abs(100 * more_branches.mean() - 7.7) < 0.1
