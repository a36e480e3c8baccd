"""From a raw slice to a Moment, with models small enough to know every answer."""

import dataclasses

import numpy as np
import pytest
from making import EVENTS, born, header, proc, raw, task

from pmutop import bundle
from pmutop.analysis.interference import LinearVerdict
from pmutop.analysis.tree import C45Tree
from pmutop.errors import BadInput
from pmutop.pipeline.engine import Engine

MS = 1_000_000
FEATURES = ["minor-faults/ms", "run-delay/run-time+run-delay", "syscalls/ms"]


def card(**more):
    return {
        "name": "test-tree",
        "kind": "tree",
        "tier": "software",
        "features": FEATURES,
        "required": ["minor-faults", "run-time", "run-delay"],
        "optional": ["syscalls"],
        "classes": ["N_OS", "P_OS_MinorFault"],
        "labels": [
            {"label": "P_OS_MinorFault", "text": "", "normal": {"minor-faults/ms": 0.5}},
            {"label": "N_OS", "text": ""},
        ],
        "blind": ["caches"],
        "machine": {},
        "scores": {},
    } | more


@pytest.fixture
def tree_bundle(tmp_path):
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [
            np.r_[rng.uniform(0, 5, 50), rng.uniform(20, 80, 50)],
            rng.uniform(0, 0.1, 100),
            np.full(100, np.nan),
        ]
    )
    y = np.repeat(["N_OS", "P_OS_MinorFault"], 50)
    return bundle.write(tmp_path / "tree", card(), C45Tree().fit(X, y).to_arrays())


@pytest.fixture
def svm_bundle(tmp_path):
    one = np.ones(1)
    verdict = LinearVerdict(0 * one, one, np.zeros(1, bool), one, one, -0.1, -5.0, 0.0, one, 0.0)
    facts = card(
        name="svm", kind="linear", features=["run-delay/run-time+run-delay"], resource="core", labels=[]
    )
    return bundle.write(tmp_path / "svm", facts, verdict.to_arrays())


def moments(bundles, *slices, **options):
    engine = Engine(header(), bundles, **options)
    return [engine.moment(one) for one in slices]


def stormy(number, faults, run=200 * MS, delay=0, seconds=0.4, ref=1):
    return raw(
        number,
        {ref: (proc(run_time=run * number, run_delay=delay * number, minor_faults=faults * number), "R")},
        seconds=seconds,
    )


def start(*refs):
    return raw(0, {ref: (proc(), "R") for ref in refs}, born(*(task(ref) for ref in refs)))


def test_a_storm_is_labelled_with_its_evidence(tree_bundle):
    _, moment = moments([tree_bundle], start(1), stormy(1, 200 * 50))
    (label,) = moment.labels[0]
    assert label.label == "P_OS_MinorFault" and label.confidence > 0.9 and label.tier == "software"
    (reason,) = moment.reasons[0]
    assert (reason.name, reason.share, reason.value, reason.normal) == ("minor-faults/ms", 1.0, 50.0, 0.5)
    assert moment.paths[0] and moment.paths[0][0].startswith("minor-faults/ms > ")


def test_health_is_a_label_too(tree_bundle):
    _, moment = moments([tree_bundle], start(1), stormy(1, 200))
    assert moment.labels[0][0].label == "N_OS" and not moment.labels[0][0].is_pathology


def test_cpu_and_wait_are_of_the_time_that_really_passed(tree_bundle):
    _, moment = moments([tree_bundle], start(1), stormy(1, 0, run=200 * MS, delay=100 * MS, seconds=0.5))
    assert moment.cpu[0] == pytest.approx(40) and moment.wait[0] == pytest.approx(20)


def test_the_first_slice_says_nothing(tree_bundle):
    (moment,) = moments([tree_bundle], start(1))
    assert moment.labels == {} and np.isnan(moment.cpu).all()


def test_nothing_is_said_of_who_hardly_ran(tree_bundle):
    _, moment = moments([tree_bundle], start(1), stormy(1, 10_000, run=2 * MS))
    assert moment.labels == {}


def test_nothing_is_said_of_a_stump_of_a_slice(tree_bundle):
    _, moment = moments([tree_bundle], start(1), stormy(1, 10_000, seconds=0.1))
    assert moment.labels == {}


def test_it_abstains_far_outside_of_what_the_model_has_seen(tree_bundle):
    _, moment = moments([tree_bundle], start(1), stormy(1, 200 * 5000))
    assert moment.labels[0][0].label == "unknown" and 0 not in moment.paths or moment.paths[0] == ()


def test_it_abstains_where_a_required_event_was_not_counted(tree_bundle):
    unread = raw(1, {1: (proc(run_time=200 * MS) | {"minor-faults": (0, 0, 0)}, "R")})
    _, moment = moments([tree_bundle], start(1), unread)
    assert moment.labels[0][0].label == "unknown"


def test_interference_of_the_core_and_the_rest_unseen(svm_bundle):
    _, moment = moments([svm_bundle], start(1), stormy(1, 0, run=100 * MS, delay=100 * MS))
    found = moment.interference[0]
    assert found.core.verdict is True and found.core.factor == pytest.approx(np.exp(0.5))
    assert found.llc.verdict is None and found.memory.factor is None and found.antagonist is None


def test_kernel_threads_are_not_judged(tree_bundle):
    first = raw(0, {1: (proc(), "R")}, born(task(1, kernel=True)))
    _, moment = moments([tree_bundle], first, stormy(1, 10_000))
    assert moment.labels == {}


def test_the_tap_sees_the_slice_untouched(tree_bundle):
    seen = []
    one = start(1)
    moments([tree_bundle], one, tap=seen.append)
    assert seen == [one]


def test_moments_do_not_change_afterwards(tree_bundle):
    engine = Engine(header(), [tree_bundle])
    engine.moment(start(1, 2))
    moment = engine.moment(stormy(1, 200 * 50))
    kept = moment.counts.copy(), moment.cpu.copy(), list(moment.tasks), list(moment.state)
    for number in range(2, 5):
        engine.moment(stormy(number, 7))
    assert np.array_equal(kept[0], moment.counts, equal_nan=True) and np.array_equal(
        kept[1], moment.cpu, equal_nan=True
    )
    assert (kept[2], kept[3]) == (moment.tasks, moment.state)


# ---------------------------------------------------------------------------------------------------------- bundles


def test_a_bundle_that_fits_is_used(tree_bundle):
    assert tree_bundle.refusal(header()) is None
    assert set(tree_bundle.arrays) == {
        "feature",
        "threshold",
        "left",
        "right",
        "share",
        "counts",
        "low",
        "high",
    }


def test_a_damaged_bundle_is_refused(tree_bundle):
    data = bytearray((tree_bundle.folder / "arrays.npz").read_bytes())
    data[100] ^= 1
    (tree_bundle.folder / "arrays.npz").write_bytes(data)
    with pytest.raises(BadInput, match="damaged"):
        bundle.read(tree_bundle.folder).arrays


def test_a_pickle_is_never_loaded(tmp_path):
    trap = {"feature": np.array([print], dtype=object)}
    made = bundle.write(tmp_path / "trap", card(), trap)
    with pytest.raises(BadInput, match="not a plain"):
        made.arrays


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "card.json").write_text('{"format": 1}')
    with pytest.raises(BadInput, match="is missing"):
        bundle.read(tmp_path)


def test_a_bundle_of_another_tier_is_refused(tmp_path, tree_bundle):
    facts = card(name="sim", tier="simulated")
    assert "simulated" in bundle.write(tmp_path / "sim", facts, {}).refusal(header())
    assert "simulated" in tree_bundle.refusal(header(source="simulated"))


def test_missing_required_events_are_named():
    needy = bundle.Bundle(None, card(required=["cycles"]))
    assert "cycles" in needy.refusal(header())


def on_processor(word, name="some processor"):
    return dataclasses.replace(header(), machine={"model": name, "processor": word})


def test_a_hardware_bundle_fits_by_the_numbers_of_the_processor_not_by_its_name():
    learnt = {"model": "Xeon Platinum 8592+", "processor": "GenuineIntel-6-207"}
    one = bundle.Bundle(None, card(tier="hardware", machine=learnt))
    assert one.refusal(on_processor("GenuineIntel-6-207", "Xeon Gold 6548Y")) is None
    said = one.refusal(on_processor("GenuineIntel-6-173", "Xeon Platinum 8592+"))
    assert "8592+" in said and "GenuineIntel-6-207" in said and "GenuineIntel-6-173" in said
    assert "cycles" in dataclasses.replace(one, card=one.card | {"required": ["cycles"]}).refusal(
        on_processor("GenuineIntel-6-207")
    )


def test_a_hardware_bundle_without_numbers_is_never_a_match():
    """An old card beside an old recording: two unknowns are not the same processor."""
    other = bundle.Bundle(None, card(tier="hardware", machine={"model": "another"}))
    assert "another" in other.refusal(header()) and "does not say" in other.refusal(on_processor(""))
    assert (
        bundle.Bundle(None, card(machine={"model": "another"})).refusal(header()) is None
    )  # software goes anywhere


@pytest.mark.parametrize("name", ["../../evil", "/etc", "..", "", "a/b"])
def test_a_name_that_would_leave_the_folder_of_models_is_refused(tmp_path, name):
    with pytest.raises(BadInput, match="no name for a model"):
        bundle.write(tmp_path / "trap", card(name=name), {})


def test_a_tree_that_points_outside_itself_is_refused(tmp_path, tree_bundle):
    arrays = dict(tree_bundle.arrays)
    arrays["left"] = arrays["left"] + 1000
    made = bundle.write(tmp_path / "evil", card(), arrays)
    with pytest.raises(BadInput):
        Engine(header(), [made])


def test_events_and_rows_agree(tree_bundle):
    _, moment = moments([tree_bundle], start(1, 2, 3), stormy(1, 0))
    assert moment.counts.shape == moment.quality.shape == (3, len(EVENTS))
