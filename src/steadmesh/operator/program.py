"""The program `steadmesh`. What the commands need is loaded behind this, so that Ctrl-C in the first
moments ends it like any other program, and not with a traceback out of somebody's imports."""

from __future__ import annotations

import signal


def main() -> None:
    """Load the commands and run the one that was typed."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # as a shell has it for what runs in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from steadmesh.operator.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
