"""The functions in which the process under the cursor spent the slices of each label, while `f` is on."""

from __future__ import annotations

from collections.abc import Callable

from pmutop import units
from pmutop.tui.history import Row
from pmutop.tui.lines import Line
from pmutop.tui.state import State

MOST = 6  # functions shown per label


class Functions:
    """Mixed into the app: samples the process under the cursor while its details are open."""

    state: State
    actions: dict[str, Callable]

    def do_functions(self) -> None:
        s = self.state
        row = s.current()
        if s.sampled is not None:
            self.stop_sampling()
        elif row is not None and self.act("hot", row.task.pid):
            s.sampled = s.selected = row.task.ref
            if s.page != "details":
                self.open_page("details")

    def stop_sampling(self) -> None:
        self.state.sampled, self.state.functions = None, []
        self.actions["hot"](None)

    def mind_sampling(self) -> None:
        """Before each picture: fetch what was found; off when the details of that process are left."""
        s = self.state
        if s.sampled is None:
            return
        row = s.current()
        if s.page != "details" or row is None or row.task.ref != s.sampled:
            self.stop_sampling()
        else:
            s.functions = self.actions["functions"]()


def hot_functions(state: State, row: Row, width: int) -> list[Line]:
    if state.sampled != row.task.ref:
        return []
    lines: list[Line] = [
        [],
        [("hot functions", "strong"), ("  (samples of its CPU time in user mode; f stops them)", "quiet")],
    ]
    if not state.functions:
        lines.append([("  no sample yet: it must use a CPU in a slice that gets a label", "quiet")])
    for found in state.functions:
        lines.append(
            [
                (
                    f"  {units.clean_text(found['label'])}",
                    "bad" if found["label"].startswith("P_") else "good",
                ),
                (f"  {found['slices']} slices, {found['samples']} samples", "quiet"),
            ]
        )
        for function in found["functions"][:MOST]:
            full = round(function["share"] * 10)
            lines.append(
                [
                    (f"    {units.share(function['share']):>4} ", ""),
                    ("█" * full + "░" * (10 - full), "mark"),
                    (f" {units.clean_text(function['name'])}", ""),
                ]
            )
    return lines
