"""A supervisor as a process of its own, which a test can kill: `python -m … SOCKET ORG DATA`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from steadmesh.runner.supervisor import SupervisorSettings, supervise


def main() -> None:
    """Run until killed."""
    socket, organization_id, data = sys.argv[1:]
    settings = SupervisorSettings(
        addresses=[f"unix:{socket}"],
        organization_id=organization_id,
        data_dir=Path(data),
        unenforced=("network_policy", "non_root"),
    )
    sys.exit(supervise(settings, stop=threading.Event(), tell=print))


if __name__ == "__main__":
    main()
