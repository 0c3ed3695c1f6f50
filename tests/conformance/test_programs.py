"""What is installed to judge us is always the same, wherever it is fetched from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LOCK: dict[str, Any] = json.loads((HERE / "package-lock.json").read_text())
WANTED: dict[str, Any] = json.loads((HERE / "package.json").read_text())


def test_versions_are_exact() -> None:
    for group in ("dependencies", "optionalDependencies"):
        assert WANTED[group] == LOCK["packages"][""][group]
        for name, version in WANTED[group].items():
            assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version), name
            assert LOCK["packages"][f"node_modules/{name}"]["version"] == version


def test_the_lock_says_what_a_package_is_and_not_where_it_lies() -> None:
    packages = {name: package for name, package in LOCK["packages"].items() if name}
    # What comes inside of another package has that one's digest.
    own = {name: package for name, package in packages.items() if not package.get("inBundle")}
    assert [name for name, package in own.items() if "integrity" not in package] == []
    assert [name for name, package in packages.items() if "resolved" in package] == []
