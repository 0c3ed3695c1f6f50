"""The pages say what there is: commands, options, settings, links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from steadmesh.kernel.config import explain, load
from steadmesh.operator.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RUNNING = ROOT / "docs" / "running.md"

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`(steadmesh [^`]+)`")
_SEPARATORS = {"|", "&&", ";", ">", "&"}


@dataclass(frozen=True)
class Command:
    """A command as the program has it."""

    words: tuple[str, ...]
    options: frozenset[str]
    help: str


def commands() -> dict[tuple[str, ...], Command]:
    """Every command, by its words."""
    return {found.words: found for found in _commands(typer.main.get_command(app), ())}


def _commands(group: object, words: tuple[str, ...]) -> Iterator[Command]:
    inner = getattr(group, "commands", None)
    if inner is None:
        options = [name for param in vars(group)["params"] for name in param.opts]
        names = frozenset(name for name in options if name.startswith("-"))
        yield Command(words, names | {"--help", "-h"}, vars(group)["help"] or "")
        return
    for name, command in inner.items():
        yield from _commands(command, (*words, name))


def command_lines(text: str) -> Iterator[tuple[int, str]]:
    """Every `steadmesh …` of a page, with its line number."""
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif in_code:
            yield from ((number, found) for found in _in_shell(line))
        else:
            yield from ((number, found) for found in _SPAN.findall(line))


def _in_shell(line: str) -> Iterator[str]:
    try:
        words = shlex.split(line.removeprefix("$ "), comments=True)
    except ValueError:
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in _SEPARATORS:
            command.append(word)
            continue
        while command and re.match(r"[A-Z_]+=", command[0]):
            command.pop(0)
        if command and command[0] == "steadmesh":
            yield shlex.join(command)
        command = []


def problem_of(line: str, known: dict[tuple[str, ...], Command]) -> str | None:
    """Why a command line would be refused for its words; nothing if it would not."""
    words = [word for word in shlex.split(line)[1:] if word != "…"]
    if "--" in words:
        words = words[: words.index("--")]
    if not words or words[0] in ("--version", "--help", "-h"):
        return None
    found = next((known[key] for n in (2, 1) if (key := tuple(words[:n])) in known), None)
    if found is None:
        return f"no such command: {line}"
    given = {word.partition("=")[0].strip("[]") for word in words if word.lstrip("[")[:2] == "--"}
    wrong = given - found.options
    return f"no such option: {', '.join(sorted(wrong))} in: {line}" if wrong else None


def broken_links(page: Path, text: str) -> list[str]:
    """The links of a page to files and headings that are not there."""
    broken = []
    for target in _LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (
            heading and heading not in _headings(file.read_text(encoding="utf-8"))
        ):
            broken.append(target)
    return broken


def _headings(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def row_of(command: Command) -> str:
    """The line about a command in the table of the page on running."""
    start = f"| `{' '.join(('steadmesh', *command.words))}"
    rows = [
        line
        for line in RUNNING.read_text(encoding="utf-8").splitlines()
        if line.startswith((f"{start}`", f"{start} "))
    ]
    assert len(rows) == 1, f"docs/running.md has {len(rows)} rows for {' '.join(command.words)}"
    return rows[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_there(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_names_what_the_program_has(page: Path) -> None:
    known = commands()
    lines = command_lines(page.read_text(encoding="utf-8"))
    assert [f"{n}: {problem}" for n, line in lines if (problem := problem_of(line, known))] == []


@pytest.mark.parametrize("command", commands().values(), ids=lambda found: " ".join(found.words))
def test_every_command_stands_on_the_page_with_all_its_options(command: Command) -> None:
    row = row_of(command)
    long = {name for name in command.options if name.startswith("--")} - {"--help", "--data"}
    assert {name for name in long if f"`{name}`" not in row} == set()


@pytest.mark.parametrize("command", commands().values(), ids=lambda found: " ".join(found.words))
def test_the_help_of_every_command_has_an_example_that_works(command: Command) -> None:
    _, separator, example = command.help.partition("Example: ")
    assert separator, "no example"
    assert shlex.split(example)[1 : len(command.words) + 1] == list(command.words)
    assert [problem_of(line, commands()) for line in _in_shell(example.strip())] == [None]


def test_every_setting_stands_on_the_page_with_its_variable() -> None:
    text = RUNNING.read_text(encoding="utf-8")
    names = [row.name for row in explain(load({}, {"HOME": "/nowhere"}))]
    missing = [
        name
        for name in names
        if f"| `{name}` | `STEADMESH_{name.replace('.', '_').upper()}` |" not in text
    ]
    assert missing == []


def test_every_page_is_in_the_list_of_pages() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]
    assert [name for name in pages if f"({name})" not in text] == []


# The checks can fail


@pytest.mark.parametrize(
    "line",
    [
        "steadmesh stats",
        "steadmesh status --jsn",
        "steadmesh seat walk lead",
        "steadmesh up f --org x",
    ],
)
def test_a_command_line_that_is_none_is_found(line: str) -> None:
    assert problem_of(line, commands()) is not None


def test_command_lines_are_found_in_code_and_in_prose() -> None:
    text = "Say `steadmesh stop`.\n```console\n$ A=b steadmesh status | head  # look\n```\n"
    assert list(command_lines(text)) == [(1, "steadmesh stop"), (3, "steadmesh status")]


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n", encoding="utf-8")
    text = "[a](gone.md) [b](page.md#a-title) [c](page.md#another) [d](https://example.org)"
    assert broken_links(page, text) == ["gone.md", "page.md#another"]
