"""What each key does: `do_<action>` for every action in the table of keys.

What reaches out of the screen (signals, priorities, saving, another source) is handed in as `actions` by the command,
so that a replay cannot kill anything.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from pmutop import units
from pmutop.errors import PmutopError
from pmutop.tui.fold import Folding, group_key, is_head
from pmutop.tui.frame import shares
from pmutop.tui.hot import Functions
from pmutop.tui.inputs import Inputs
from pmutop.tui.past import Past
from pmutop.tui.placement import separation
from pmutop.tui.state import Menu, Prompt, State

#: What the command may hand in: name -> arguments and result. Each returns '' or a line that says what went wrong.
ACTIONS = {
    "signal": "(task, number) -> str",
    "renice": "(task, nice) -> str",
    "affinity": "(task, set of CPUs) -> str",
    "threads": "(on) -> str: rows per thread rather than per process, from the next slice on",
    "save": "(first, last) -> str: write these slices (None: all) as a recording; the line says where",
    "past": "(first, last, give) -> bool: judge slices of the look-back again and call give(Moments) from any thread",
    "oldest": "() -> int or None: the oldest slice of the look-back",
    "hot": "(pid or None) -> str: sample where this process is, or no longer",
    "functions": "() -> what was sampled, by label: see pipeline.hot",
    "pause": "(on) -> str: hold the source too (a replay)",
    "seek": "(slices) -> str: move the source (a replay)",
}

#: The signals of the menu, the usual ones first.
SIGNALS = (
    "SIGTERM",
    "SIGKILL",
    "SIGINT",
    "SIGHUP",
    "SIGSTOP",
    "SIGCONT",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGALRM",
    "SIGABRT",
)


class Deeds(Inputs, Past, Functions, Folding):
    """Mixed into the app: changes `self.state`, calls `self.actions`."""

    state: State
    actions: dict[str, Callable]
    keep: Callable[[dict], None] | None

    def act(self, name: str, *arguments) -> bool:
        """Do one thing to the world; whatever goes wrong becomes the message line."""
        action = self.actions.get(name)
        if action is None:
            self.state.message = f"{name}: not possible here (a replay, or not handed in)"
            return False
        try:
            self.state.message = action(*arguments) or ""
        except (OSError, ValueError) as error:
            self.state.message = f"{name}: {error}"
            return False
        return not self.state.message

    def settings(self) -> dict:
        """What is kept between runs."""
        s = self.state
        return {
            "columns": list(s.columns),
            "sort": s.sort,
            "tree": s.tree,
            "grouped": s.grouped,
            "kernel": s.kernel,
        }

    def kept(self) -> None:
        if self.keep is not None:
            try:
                self.keep(self.settings())
            except (OSError, PmutopError) as error:
                self.state.message = f"the set-up could not be kept: {error}"

    # -- pages ------------------------------------------------------------------------------------------------------

    def open_page(self, name: str) -> None:
        s = self.state
        s.page = "" if s.page == name else name
        s.page_top = 0
        s.page_keys = bool(s.page) and not shares(s, self.size.height)

    def do_help(self) -> None:
        self.open_page("help")

    def do_details(self) -> None:
        """Of a process; a group is unfolded, and folded again."""
        row = self.state.current()
        if is_head(row) and self.state.page != "details":
            self.unfold(row.task.ref not in self.state.unfolded)
        else:
            self.open_page("details")
            if row is not None and self.state.page:
                self.state.selected = row.task.ref  # rows run; the page stays with its process

    def do_blame(self) -> None:
        self.open_page("blame")

    def do_cores(self) -> None:
        self.open_page("cores")

    def do_timeline(self) -> None:
        self.open_page("timeline")

    def do_welcome(self) -> None:
        self.open_page("welcome")

    def do_switch(self) -> None:
        if self.state.page and shares(self.state, self.size.height):
            self.state.page_keys = not self.state.page_keys

    def do_escape(self) -> None:
        s = self.state
        if s.page:
            s.page, s.page_keys = "", False
        elif s.filter or s.user:
            s.filter = s.user = ""
        elif s.held is not None:
            self.do_live()

    # -- the cursor -------------------------------------------------------------------------------------------------

    def step(self, rows: int) -> None:
        s = self.state
        if s.page and (s.page_keys or not shares(s, self.size.height)):
            s.page_top = max(0, s.page_top + rows)
        else:
            s.move(s.cursor + rows, time.monotonic())

    def page_size(self) -> int:
        return max((self.size.height - 8) if self.state.page_keys else self.state.height - 1, 1)

    def do_up(self) -> None:
        self.step(-1)

    def do_down(self) -> None:
        self.step(1)

    def do_page_up(self) -> None:
        self.step(-self.page_size())

    def do_page_down(self) -> None:
        self.step(self.page_size())

    def do_top(self) -> None:
        if self.state.page_keys:
            self.state.page_top = 0
        else:
            self.state.move(0, time.monotonic())
            self.state.selected = None

    def do_bottom(self) -> None:
        if self.state.page_keys:
            self.state.page_top = 1 << 30
        else:
            self.state.move(len(self.state.order) - 1, time.monotonic())

    def do_left(self) -> None:
        self.state.shift = max(0, self.state.shift - 8)

    def do_right(self) -> None:
        self.state.shift = min(self.state.shift + 8, 4096)

    def do_follow(self) -> None:
        s = self.state
        s.follow = not s.follow
        row = s.current()
        if s.follow and row is not None:
            s.selected = row.task.ref
        s.message = "following this process" if s.follow else ""

    def do_finding(self) -> None:
        """To the worst finding first, then to the next at each press."""
        s = self.state
        found = s.found
        if not found:
            s.message = "nothing was found"
            return
        at = next((place for place, row in enumerate(found) if row.task.ref == s.selected), -1)
        s.finding = (at + 1) % len(found)
        if s.grouped:
            s.unfolded.add(s.groups.get(group_key(found[s.finding]), 0))
            s.arrange(time.monotonic())
        if not s.select(found[s.finding].task.ref, time.monotonic()):
            s.message = "that process is hidden by the filter (Esc takes it off)"

    # -- which rows, in which order ---------------------------------------------------------------------------------

    def sort_by(self, name: str) -> None:
        self.state.sort, self.state.reversed, self.state.still_until = name, False, 0.0
        self.state.tree = False
        self.kept()

    def do_sort_label(self) -> None:
        self.sort_by("LABEL")

    def do_sort_cpu(self) -> None:
        self.sort_by("CPU%")

    def do_sort_memory(self) -> None:
        self.sort_by("RES")

    def do_sort_pid(self) -> None:
        self.sort_by("PID")

    def do_reverse(self) -> None:
        self.state.reversed = not self.state.reversed

    def do_tree(self) -> None:
        self.state.tree = not self.state.tree
        self.state.grouped = self.state.grouped and not self.state.tree
        self.kept()

    def do_kernel(self) -> None:
        self.state.kernel = not self.state.kernel
        self.state.message = (
            f"kernel threads are {'shown' if self.state.kernel else 'hidden while they use no CPU'}"
        )
        self.kept()

    def do_threads(self) -> None:
        s = self.state
        s.threads = not s.threads
        if "threads" in self.actions:
            self.act("threads", s.threads)
        s.message = s.message or f"threads are {'shown' if s.threads else 'hidden'}"

    # -- what reaches out -------------------------------------------------------------------------------------------

    def do_tag(self) -> None:
        row = self.state.current()
        if row is not None:
            self.state.tagged ^= {row.task.ref}
            self.step(1)

    def do_untag(self) -> None:
        self.state.tagged.clear()

    def do_signal(self) -> None:
        targets = self.state.targets()
        if not targets:
            return
        if "signal" not in self.actions:
            self.act("signal")
            return
        names = [name for name in SIGNALS if hasattr(signal, name)]
        choices = [(f"{int(getattr(signal, name)):2} {name}", getattr(signal, name)) for name in names]
        whom = (
            f"{targets[0].task.comm} {targets[0].task.pid}"
            if len(targets) == 1
            else f"{len(targets)} processes"
        )

        def send(number: int) -> None:
            for row in targets:
                if not self.act("signal", row.task, number):
                    return
            self.state.message = f"sent {signal.Signals(number).name} to {units.clean_text(whom)}"

        self.state.menu = Menu(f"Signal to {units.clean_text(whom)}", choices, send)

    def renice(self, by: int) -> None:
        for row in self.state.targets():
            nice = max(-20, min(19, int(row.moment.nice[row.index]) + by))
            if self.act("renice", row.task, nice):
                self.state.message = f"{units.clean_text(row.task.comm)} {row.task.pid}: nice {nice}"

    def do_nice_down(self) -> None:
        self.renice(-1)

    def do_nice_up(self) -> None:
        self.renice(1)

    def do_affinity(self) -> None:
        targets = self.state.targets()

        def choose(text: str) -> None:
            try:
                cpus = cpu_list(text)
            except ValueError:
                self.state.message = f"'{text}' is no list of CPUs (write 0,2-3)"
                return
            for row in targets:
                if not self.act("affinity", row.task, cpus):
                    return
            self.state.message = f"{len(targets)} now on CPUs {text}"

        if "affinity" not in self.actions:
            self.act("affinity")
        elif targets:
            self.state.prompt = Prompt("CPUs (0,2-3)", choose)

    def do_separate(self) -> None:
        """Offer to move the antagonist of the process under the cursor to another CPU; nothing is done unless chosen."""
        row = self.state.current()
        found = separation(row.moment, row.index) if row is not None and not is_head(row) else None
        if found is None:
            self.state.message = "nobody is named who slows this process"
        elif not found.cpus:
            self.state.message = found.why
        elif "affinity" not in self.actions:
            self.act("affinity")
        else:
            choices = [("leave it where it is", False), (units.clean_text(found.commands[0]), True)]

            def move(wanted: bool) -> None:
                if wanted and self.act("affinity", found.task, set(found.cpus)):
                    self.state.message = f"done: {found.commands[0]}"

            whom = units.clean_text(f"{found.task.comm} {found.task.pid}")
            self.state.menu = Menu(f"Move {whom} away?", choices, move)

    def do_repaint(self) -> None:
        self.repaint()

    def do_quit(self) -> None:
        self.exit(return_code=0)


def cpu_list(text: str) -> set[int]:
    """'0,2-3' -> {0, 2, 3}; ValueError for anything else."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    if not cpus:
        raise ValueError(text)
    return cpus
