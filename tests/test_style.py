"""The house style, as checks: what is only written down does not hold."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from jinja2.meta import find_undeclared_variables

from mdmemory.render import environment

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "mdmemory"
MODULES = sorted(path for top in ("mdmemory", "tests", "benchmarks", "examples") for path in (REPOSITORY / top).rglob("*.py"))
OURS = [path for path in MODULES if PACKAGE in path.parents]
TREES = {path: ast.parse(path.read_bytes()) for path in MODULES}
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Runs in a child: replaces os.environ by one that tells which lines of the package read it, then imports every module.
IMPORT_ALL = """
import collections.abc, importlib, os, pkgutil, sys, threading
package, library, real, faults = sys.argv[1], os.path.dirname(os.__file__), os.environ, []

def note(what):
    frame = sys._getframe(2)
    while is_library(frame.f_code.co_filename):  # os.path.expanduser reads for whoever calls it
        frame = frame.f_back
    if frame.f_code.co_filename.startswith(package):
        faults.append(f"{frame.f_code.co_filename}:{frame.f_lineno} reads {what}")

def is_library(file):  # importing is not calling: what a module of the library reads when it is imported is its own affair
    return file.startswith((library, "<frozen ")) and "site-packages" not in file and "importlib" not in file

class Environment(collections.abc.MutableMapping):
    def __getitem__(self, key): note(key); return real[key]
    def __iter__(self): note("all of the environment"); return iter(real)
    def __len__(self): return len(real)
    def __setitem__(self, key, value): note(key); real[key] = value
    def __delitem__(self, key): note(key); del real[key]
    def copy(self): return dict(self)

os.environ = Environment()
import mdmemory
for module in pkgutil.walk_packages(mdmemory.__path__, "mdmemory."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError:  # its framework has an environment of its own, see scripts/test-frameworks
        if not module.name.startswith("mdmemory.adapters."):
            raise
if threading.active_count() > 1:
    faults.append("a thread was started")
sys.exit("\\n".join(faults) or 0)
"""


def _functions(paths: list[Path]) -> Iterator[tuple[str, Function]]:
    for path in paths:
        for node in ast.walk(TREES[path]):
            if isinstance(node, Function):
                yield f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.name}", node


def _parameters(function: Function) -> list[str]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [parameter.arg for parameter in every if parameter.arg not in ("self", "cls")]


def _lines(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{path.relative_to(REPOSITORY)}:{number}", line


def test_a_module_has_at_most_300_lines() -> None:
    """A module that grows beyond 300 lines is two modules."""
    lengths = {str(path.relative_to(REPOSITORY)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > 300} == {}


def test_a_function_has_at_most_50_lines() -> None:
    """A function can be seen at once, its docstring included."""
    lengths = {where: (node.end_lineno or 0) - node.lineno + 1 for where, node in _functions(MODULES)}
    assert {where: length for where, length in lengths.items() if length > 50} == {}


def test_a_function_has_at_most_7_parameters() -> None:
    """What needs more than seven, besides self, wants to be a dataclass."""
    counts = {where: len(_parameters(node)) for where, node in _functions(MODULES)}
    assert {where: count for where, count in counts.items() if count > 7} == {}


def test_every_module_has_a_docstring() -> None:
    """The first line of a module says what it is for."""
    assert [str(path.relative_to(REPOSITORY)) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_every_test_says_which_behaviour_it_holds() -> None:
    """The docstrings of the tests, read one after the other, are the specification."""
    tests = [path for path in MODULES if REPOSITORY / "tests" in path.parents]
    assert [where for where, node in _functions(tests) if node.name.startswith("test_") and not ast.get_docstring(node)] == []


def test_no_error_is_swallowed_without_a_reason() -> None:
    """Whatever catches every exception raises it again, or says beside it why not."""
    faults = []
    for path in OURS:
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.ExceptHandler) and _swallows_all(node) and not _has_reason(lines[node.lineno - 1]):
                faults.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}")
    assert faults == []


def test_no_check_is_switched_off_without_a_reason() -> None:
    """A `type: ignore` or a `noqa` says beside it why."""
    switch = re.compile(r"  # (type:\s*ignore|noqa)")
    assert [where for where, line in _lines(MODULES) if switch.search(line) and not _has_reason(line)] == []


def test_prompts_are_templates_that_list_their_variables() -> None:
    """Every prompt is a `.md.j2` file whose first comment names each variable that it uses."""
    prompts = sorted((PACKAGE / "prompts").rglob("*"))
    assert [path.name for path in prompts if not path.name.endswith(".md.j2")] == []
    faults = {}
    for path in prompts:
        text = path.read_text(encoding="utf-8")
        header = re.match(r"\{#.*?#\}", text, re.DOTALL)
        listed = set(re.findall(r"\w+", header[0])) if header else set()
        used = find_undeclared_variables(environment(None).parse(text))
        if header is None or used - listed:
            faults[path.name] = used - listed if header else "no header comment"
    assert prompts and faults == {}


def test_no_file_names_a_place_on_the_machine_it_was_written_on() -> None:
    """The project reads the same wherever it is cloned; /home/user/ is a home in every sandbox of E2B."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY, capture_output=True, check=True
    )
    place = re.compile(rb"(?<![\w.~*])/(?:work|root|home/(?!user/)\w+|Users/\w+)/")
    paths = [REPOSITORY / name.decode() for name in listing.stdout.split(b"\0") if name]
    assert [path.name for path in paths if path.is_file() and place.search(path.read_bytes())] == []


def test_floors_import_only_downward() -> None:
    """The layers of pyproject.toml hold, counting imports inside functions and those for type checkers only."""
    # In a process of its own: it sets up logging anew, and would silence every logger of the other tests.
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", lint], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_inside_goes_through_the_public_names() -> None:
    """Inside the package a name is imported from its own module, else the floors could not be seen."""
    public = set(re.findall(r'^    "(\w+)",$', (PACKAGE / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE))
    faults = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in OURS
        for node in ast.walk(TREES[path])
        if (isinstance(node, ast.ImportFrom) and node.module == "mdmemory" and public & {alias.name for alias in node.names})
        or (isinstance(node, ast.Import) and "mdmemory" in {alias.name for alias in node.names})
    ]
    assert public and faults == []


def test_importing_has_no_effect(tmp_path: Path) -> None:
    """Importing every module prints nothing, reads no environment variable, starts no thread and creates no file."""
    places = {name: tmp_path / name for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    for place in (*places.values(), tmp_path / "cwd"):
        place.mkdir()
    env = {**os.environ, **{name: str(place) for name, place in places.items()}}
    env |= {"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", IMPORT_ALL, str(PACKAGE)]
    child = subprocess.run(command, cwd=tmp_path / "cwd", env=env, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")
    assert [path for place in tmp_path.iterdir() for path in place.iterdir()] == []


def _swallows_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    catches_all = any(kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")) for kind in kinds)
    raises_again = isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
    return catches_all and not raises_again


def _has_reason(line: str) -> bool:
    comment = re.sub(r"#?\s*(type:\s*ignore(\[[\w, -]+\])?|noqa(:\s*[A-Z0-9, ]+)?)", "", line.partition("  #")[2])
    return len(comment.strip(" #-:")) >= 10
