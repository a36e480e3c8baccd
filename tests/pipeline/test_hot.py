"""Places joined with labels: only the processes asked for, each sample under the label of its own slice."""

from types import SimpleNamespace

from making import task

from pmutop.moment import Label
from pmutop.pipeline.hot import Hot


class Names:
    def name(self, pid: int, address: int) -> str:
        return {1: "load", 2: "swap"}.get(address, "[unknown]")


def moment(labels: dict[int, str]):
    tasks = [task(1, comm="canneal"), task(2, comm="other")]
    said = {row: (Label(label, "", 0.9, "simulated", "test"),) for row, label in labels.items()}
    return SimpleNamespace(tasks=tasks, labels=said)


def test_samples_go_to_the_label_of_their_slice():
    hot, (mine, other) = Hot(Names()), (1001, 1002)
    hot.add(moment({0: "P_Mem_M", 1: "N_CPU"}), [0], [(mine, 1), (mine, 1), (mine, 2), (other, 1)])
    hot.add(moment({0: "N_CPU"}), [0], [(mine, 2)])
    hot.add(moment({0: "P_Mem_M"}), [0], [(mine, 1), (mine, 9)])
    hot.add(moment({}), [0], [(mine, 9)])  # not judged: no label, no sample
    first, second = [line["hot"] for line in hot.lines()]
    assert (first["comm"], first["label"], first["slices"], first["samples"]) == ("canneal", "P_Mem_M", 2, 5)
    assert first["functions"][0] == {"name": "load", "share": 0.6}
    assert (second["label"], second["functions"]) == ("N_CPU", [{"name": "swap", "share": 1.0}])
    assert len(hot.lines()) == 2
