"""All of `pmutop validate --tier hardware`, ten repetitions: figures for tests/bench/emulated.py, some minutes long."""

from manyruns import validated


def check_every_benchmark_ten_times():
    return validated(10)
