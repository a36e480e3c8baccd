"""When the system reader becomes too dear for the machine, and what it says then."""

from __future__ import annotations

ALL, NO_EVENTS, HANDED_BACK = "", "no events", "handed back"

FLOOD = 100_000.0  # context switches a second; sampling them takes a tenth of a CPU
PATIENCE = 5  # slices in a row that are too dear before something is given up
RELIEF = 75  # slices in a row at less than half before events are counted again


class Budget:
    """Weighs every slice; `state` is what is left (ALL, NO_EVENTS, HANDED_BACK) and `why` one sentence for the screen."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.state = ALL
        self.why = ""
        self.dear = self.cheap = 0

    def weigh(self, own: float, switches: float) -> None:
        """own: CPUs that we took ourselves in this slice (0.02 = 2 % of one); switches: context switches a second."""
        load = max(own / self.share, switches / FLOOD)
        self.dear = self.dear + 1 if load >= 1 else 0
        self.cheap = self.cheap + 1 if load < 0.5 else 0
        last = (
            HANDED_BACK if switches >= FLOOD else NO_EVENTS
        )  # attaching costs by the task: it saves nothing but switches
        if self.dear >= PATIENCE and self.state not in (last, HANDED_BACK):
            cause = f"{switches:,.0f} context switches a second"
            if switches < FLOOD:
                cause = f"pmutop took {own:.1%} of a CPU, more than --budget {self.share:.1%}"
            if self.state == ALL:
                self.state, self.why = NO_EVENTS, f"{cause}: counting no events, only who ran"
            else:
                self.state, self.why = HANDED_BACK, f"{cause}: went over to the attach reader"
            self.dear = 0
        elif self.cheap >= RELIEF and self.state == NO_EVENTS:
            self.state, self.why = ALL, ""
