"""One small family: what went wrong, what to do about it, and the exit code. Raised anywhere, printed by cli only."""


class PmutopError(Exception):
    """The work failed: one line that names the cause, and a hint that names the fix."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(PmutopError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class NoPermission(PmutopError):
    """The kernel refused; the hint says which setting or capability would allow it."""

    exit_code = 3


class BadInput(PmutopError):
    """A file is not what it should be; the message names the file and the place in it."""

    exit_code = 4
