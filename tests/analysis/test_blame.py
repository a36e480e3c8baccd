"""Who hurts whom: a simulated run queue with a known culprit, and one test per gate that would blame wrongly without it."""

import numpy as np
import pytest

from pmutop.analysis import blame as blame_module
from pmutop.analysis.blame import Blame, Occupancy, score_suspects
from pmutop.analysis.blame_gates import mix_changed, too_small, without_steal, without_throttling

SLICE = 0.4
VICTIM, CULPRIT = 100, 200


def occupancy(ids, ran: dict[tuple[int, int], float]) -> Occupancy:
    """(id, cpu) -> seconds as an Occupancy over the rows `ids`."""
    rows = [list(ids).index(one) for one, _ in ran]
    return Occupancy(np.array(rows), np.array([cpu for _, cpu in ran]), np.array(list(ran.values())))


def two_on_a_cpu(generator, on: float, bursts: np.ndarray):
    """What a fair scheduler gives in one slice of CPU 0 that a victim always wants, a culprit for `on` of the slice, and
    sleepers for their `bursts` (seconds; they preempt): (victim, culprit, wait of the victim)."""
    left = SLICE - bursts.sum()
    culprit = min(max(on * left / 2 + (0.004 * generator.normal() if 0 < on else 0.0), 0.0), on * left)
    return left - culprit, culprit, SLICE - (left - culprit)


def pulsing(seed: int, slices: int = 300):
    """The scenario: victim and culprit on CPU 0, the culprit 2 s on and 2 s off at a random phase; five innocents busy on
    CPU 1, five on CPU 0 at 1 % duty in bursts of 1-4 ms. Yields (ids, wait, occupancy, the culprit's seconds)."""
    generator = np.random.default_rng(seed)
    phase = generator.uniform(0, 4)
    busy, sleepers = [300 + i for i in range(5)], [400 + i for i in range(5)]
    ids = np.array([VICTIM, CULPRIT, *busy, *sleepers])
    for number in range(slices):
        moments = number * SLICE + phase + np.linspace(0, SLICE, 400, endpoint=False)
        on = float((moments % 4 < 2).mean())
        bursts = generator.poisson(0.01 * SLICE / 0.0025, 5) * generator.uniform(0.001, 0.004, 5)
        own, culprit, wait = two_on_a_cpu(generator, on, bursts)
        ran = {(VICTIM, 0): own} | ({(CULPRIT, 0): culprit} if culprit else {})
        ran |= {(one, 1): SLICE / 5 + 0.003 * generator.normal() for one in busy}
        ran |= {(one, 0): burst for one, burst in zip(sleepers, bursts, strict=True) if burst}
        waits = np.array([wait, culprit, *(5 * [0.8 * SLICE]), *(5 * [0.001])])
        yield ids, waits, occupancy(ids, ran), culprit


def test_the_pulsing_culprit_is_named_when_it_runs_and_nobody_when_it_does_not():
    named = runs = accused = quiet = 0
    for seed in range(8):
        blame = Blame()
        for ids, wait, ran, culprit in pulsing(seed):
            found = {ids[one.victim]: one for one in blame.update(ids, SLICE, wait, ran)}
            said = ids[found[VICTIM].suspect] if VICTIM in found else None
            if culprit > 0:
                runs, named = runs + 1, named + (said == CULPRIT)
            else:
                quiet, accused = quiet + 1, accused + (said is not None)
    print(
        f"named {named / runs:.4f} of {runs} slices in which it runs, somebody {accused / quiet:.4f} of {quiet} others"
    )
    assert runs > 1200 and quiet > 900
    assert named / runs >= 0.95
    assert accused / quiet <= 0.01


def test_the_evidence_is_the_two_medians():
    blame, waits, one = Blame(), {True: [], False: []}, None
    for ids, wait, ran, culprit in pulsing(3, slices=70):
        found = blame.update(ids, SLICE, wait, ran)
        waits[culprit > 0.002].append(wait[0] / SLICE)
        one = next((one for one in found if ids[one.victim] == VICTIM), one)
    assert one.before == pytest.approx(np.median(waits[False]), abs=0.02) and one.before < 0.1
    assert one.during == pytest.approx(np.median(waits[True]), abs=0.05) and one.during > 0.4
    assert one.resource == "core" and 0.9 < one.score <= 1


def test_two_hogs_started_together_are_seen_within_three_slices():
    blame, ids = Blame(), np.array([VICTIM, CULPRIT])
    for number in range(3):
        found = blame.update(
            ids, SLICE, np.array([0.2, 0.2]), occupancy(ids, {(VICTIM, 0): 0.2, (CULPRIT, 0): 0.2})
        )
    assert number == 2 and {(one.victim, one.suspect) for one in found} == {(0, 1), (1, 0)}
    assert found[0].before == pytest.approx(0.0) and found[0].during == pytest.approx(0.5)


def test_antagonists_that_take_turns_are_not_hidden_by_their_constant_sum():
    ids, hits = np.array([VICTIM, 201, 202]), 0
    generator, blame = np.random.default_rng(5), Blame()
    for number in range(60):
        turn = 201 + number // 5 % 2
        had = 0.2 + 0.01 * generator.normal()
        ran = occupancy(ids, {(VICTIM, 0): SLICE - had, (turn, 0): had})
        found = blame.update(ids, SLICE, np.array([had, 0.2, 0.2]), ran)
        hits += any(one.victim == 0 and ids[one.suspect] == turn for one in found)
    assert hits >= 57


def test_a_hog_on_another_cpu_is_never_a_suspect_however_well_it_correlates():
    ids, blame = np.array([VICTIM, CULPRIT, 300]), Blame()
    for number in range(40):
        on = number // 5 % 2
        ran = {(VICTIM, 0): 0.2, (300, 0): 0.2 if on else 0.001} | ({(CULPRIT, 1): 0.4} if on else {})
        found = blame.update(ids, SLICE, np.array([0.2 * on, 0.0, 0.0]), occupancy(ids, ran))
        assert all(ids[one.suspect] != CULPRIT for one in found)
        if on and number > 10:
            assert {ids[one.suspect] for one in found} == {300}


def test_migration_keeps_victim_and_culprit_together():
    ids, blame, hits = np.array([VICTIM, CULPRIT]), Blame(), 0
    for number in range(40):
        cpu = number // 3 % 2
        ran = occupancy(ids, {(VICTIM, cpu): 0.2, (CULPRIT, cpu): 0.2})
        hits += len(blame.update(ids, SLICE, np.array([0.2, 0.2]), ran)) == 2
    assert hits == 40


def test_a_victim_that_got_nothing_waits_where_it_ran_last():
    ids, blame = np.array([VICTIM, CULPRIT]), Blame()
    for _ in range(5):
        blame.update(ids, SLICE, np.array([0.2, 0.2]), occupancy(ids, {(VICTIM, 3): 0.2, (CULPRIT, 3): 0.2}))
    found = blame.update(ids, SLICE, np.array([0.4, 0.0]), occupancy(ids, {(CULPRIT, 3): 0.4}))
    assert [(one.victim, one.suspect) for one in found] == [(0, 1)]


# ---- shared caches: the factor instead of the wait ------------------------------------------------------------------


def cache_story(pattern, seed=0, factor_on=2.0, mix=None, resource="llc"):
    """A victim on CPU 0 whose factor rises while CULPRIT is on (by `pattern`) on CPU 1, beside an innocent on CPU 1 that is
    always on; the names given to the victim, slice by slice."""
    generator, ids, said = np.random.default_rng(seed), np.array([VICTIM, CULPRIT, 300]), []
    blame = Blame(resource, domain_of=np.zeros(4, dtype=int))
    for number, on in enumerate(pattern):
        factor = np.array([(factor_on if on else 1.0) * generator.lognormal(0, 0.02), np.nan, np.nan])
        half = 0.2 + 0.01 * generator.normal()
        ran = {(VICTIM, 0): 0.4, (300, 1): half if on else 0.4} | ({(CULPRIT, 1): 0.4 - half} if on else {})
        shown = None if mix is None else np.array([mix[number], [1.0], [1.0]])
        found = blame.update(ids, SLICE, np.zeros(3), occupancy(ids, ran), factor=factor, mix=shown)
        said.append({ids[one.suspect] for one in found if one.victim == 0})
    return said


def test_the_cache_culprit_is_named_once_it_has_come_and_gone():
    pattern = [number // 5 % 2 for number in range(75)]
    said = cache_story(pattern)
    assert all(names <= {CULPRIT} for names in said)
    assert sum(bool(names) for names, on in zip(said, pattern, strict=True) if on) >= 30
    assert not any(names for names, on in zip(said, pattern, strict=True) if not on)


def test_one_coincidence_is_no_correlation():
    said = cache_story([0] * 20 + [1] * 20)
    assert not any(said)


def test_only_siblings_are_suspects_for_smt():
    ids, blame = np.array([VICTIM, CULPRIT, 300]), Blame("smt", domain_of=np.array([0, 0, 1, 1]))
    for number in range(60):
        on = number // 5 % 2
        ran = {(VICTIM, 0): 0.4, (300, 2): 0.4 * on + 0.001} | ({(CULPRIT, 1): 0.4} if on else {})
        found = blame.update(
            ids, SLICE, np.zeros(3), occupancy(ids, ran), factor=np.array([1 + on, np.nan, np.nan])
        )
        assert {ids[one.suspect] for one in found} <= {CULPRIT}
    assert not found or on
    assert blame.number == 60 and on and {ids[one.suspect] for one in found} == {CULPRIT}


# ---- gates: each test first shows the wrong blame, then that the gate prevents it ------------------------------------


def test_gate_quota_throttling():
    ids = np.array([VICTIM, CULPRIT])

    def names(throttled):
        blame, found = Blame(), []
        for _ in range(20):  # the quota holds the victim for 0.2 s; the suspect uses the CPU meanwhile
            ran = occupancy(ids, {(VICTIM, 0): 0.2, (CULPRIT, 0): 0.2})
            found += blame.update(ids, SLICE, np.array([0.2, 0.0]), ran, throttled=throttled)
        return {(one.victim, one.suspect) for one in found}

    assert names(None) == {(0, 1)}
    assert names(np.array([0.199, 0.0])) == set()
    assert without_throttling(np.array([0.5, 0.1]), np.array([0.3, 0.2])).tolist() == pytest.approx(
        [0.2, 0.0]
    )


def test_gate_steal_time():
    ids = np.array([VICTIM, CULPRIT])

    def names(steal):
        blame, found = Blame(), []
        for _ in range(
            20
        ):  # the hypervisor takes 0.1 s from the victim; the suspect runs while the victim sleeps
            ran = occupancy(ids, {(VICTIM, 0): 0.2, (CULPRIT, 0): 0.08})
            wait = np.array([0.1, 0.0])
            found += blame.update(ids, SLICE, wait, ran, steal=steal)
        return {(one.victim, one.suspect) for one in found}

    assert names(None) == {(0, 1)}
    assert names(np.array([0.1, 0.0])) == set()
    left = without_steal(
        np.array([0.5, 0.5]), np.array([0]), np.array([1]), np.array([0.3]), np.array([0.0, 0.4])
    )
    assert left.tolist() == pytest.approx([0.1, 0.3])


def test_gate_victim_below_five_percent(monkeypatch):
    ids = np.array([VICTIM, CULPRIT])

    def names():
        blame, found = Blame(), []
        for _ in range(20):  # a task that wakes for 2 ms and waits 4 ms for it: nobody's victim
            ran = occupancy(ids, {(VICTIM, 0): 0.002, (CULPRIT, 0): 0.39})
            found += blame.update(ids, SLICE, np.array([0.004, 0.0]), ran)
        return {(one.victim, one.suspect) for one in found}

    assert names() == set()
    monkeypatch.setattr(blame_module, "too_small", lambda had, waited: False)
    assert names() == {(0, 1)}
    assert too_small(0.049, 0.3) and not too_small(0.05, 0.3) and not too_small(0.01, 0.9)


def test_gate_own_phase_change():
    """The victim alternates between two kinds of work, one of which looks slow; a suspect happens to keep its time."""
    pattern = [number // 5 % 2 for number in range(75)]
    own = [[0.30] if on else [0.05] for on in pattern]  # its own faults per instruction tell the phases apart
    assert any(cache_story(pattern))
    assert not any(cache_story(pattern, mix=own))


def test_a_steady_mix_does_not_disarm_the_verdict():
    pattern = [number // 5 % 2 for number in range(75)]
    generator = np.random.default_rng(1)
    steady = [[0.05 * generator.lognormal(0, 0.1)] for _ in pattern]
    assert cache_story(pattern, mix=steady) == cache_story(pattern)


def test_mix_changes_are_jumps_not_noise():
    past = np.array([[1.0, 5.0], [1.1, 5.1], [0.9, 4.9], [1.0, 5.0]])
    assert (
        not mix_changed(past, [1.3, 5.2]) and mix_changed(past, [1.0, 9.0]) and mix_changed(past, [1.9, 5.0])
    )
    assert not mix_changed(past[:2], [9.0, 9.0]) and not mix_changed(past, [np.nan, 5.0])


def test_waits_of_its_own_threads_are_not_laid_on_a_bystander():
    ids, blame, generator = np.array([VICTIM, CULPRIT]), Blame(), np.random.default_rng(7)
    for _ in range(
        40
    ):  # two threads of the victim share CPU 0 and wait for each other; a small task runs 3 % beside
        had = 0.012 * generator.lognormal(0, 0.3)
        ran = occupancy(ids, {(VICTIM, 0): SLICE - had, (CULPRIT, 0): had})
        assert not blame.update(ids, SLICE, np.array([SLICE + had, 0.0]), ran)


# ---- scores and state -----------------------------------------------------------------------------------------------


def test_score_is_pearsons_r_where_times_do_not_add_up():
    generator = np.random.default_rng(8)
    activity = np.where(np.arange(40) // 4 % 2, generator.uniform(0.2, 0.9, (3, 40)), 0.0)
    suffering = 0.5 * activity[0] + 0.05 * generator.random(40)
    scored = score_suspects(suffering, np.ones(40), activity, activity.sum(axis=0), adds_up=False)
    expected = [np.corrcoef(row, suffering)[0, 1] for row in activity]
    assert scored.score == pytest.approx(np.clip(expected, 0, 1))
    off = activity[0] == 0
    assert scored.before[0] == pytest.approx(np.median(suffering[off]))
    assert scored.during[0] == pytest.approx(np.median(suffering[~off]))


def test_state_is_bounded_and_the_dead_are_forgotten():
    blame = Blame(slices=10)
    for number in range(200):  # every process lives for two slices
        ids = np.array([number, number + 1])
        blame.update(
            ids, SLICE, np.array([0.2, 0.2]), occupancy(ids, {(number, 0): 0.2, (number + 1, 0): 0.2})
        )
    assert len(blame.ran) == 10 and len(blame.suffered) <= 21
    assert max(map(len, blame.suffered.values())) <= 10


def test_unknown_waits_and_empty_slices_are_nobodys_fault():
    blame, ids = Blame(), np.array([VICTIM, CULPRIT])
    nothing = Occupancy(np.array([], dtype=int), np.array([], dtype=int), np.array([]))
    for _ in range(5):
        assert not blame.update(ids, SLICE, np.array([np.nan, 0.2]), occupancy(ids, {(VICTIM, 0): 0.2}))
        assert not blame.update(np.array([], dtype=np.int64), SLICE, np.array([]), nothing)
        assert not blame.update(ids, SLICE, np.array([0.4, 0.4]), nothing)
