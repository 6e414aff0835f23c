"""Run the Anthropic SDK's own tests of its memory tool on ours.

python tests/anthropic_suite.py [PYTEST_ARGUMENTS]     what scripts/conformance-anthropic calls

The tests are in the source package of the installed version, which is fetched from the package index once an environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

TESTS = "tests/lib/tools/memory_tools/test_filesystem.py"
HERE = Path(__file__).parent


def source_package() -> Path:
    """The sdist of the installed SDK; an error when it can't be had."""
    place, wanted = Path(sys.prefix, "share/mdmemory-conformance"), f"anthropic-{version('anthropic')}"
    sdist = place / f"{wanted}.tar.gz"
    if not sdist.exists():
        what = ["--no-deps", "--no-binary", ":all:", "--dest", str(place), wanted.replace("-", "==")]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *what], check=True)
    return sdist


def run(arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the suite in a process of its own."""
    sdist = source_package()
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(sdist) as package, open(Path(place, "test_filesystem.py"), "wb") as tests:
            member = package.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/{TESTS}")
            assert member is not None
            tests.write(member.read())
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "anthropic_ours.py"), *arguments]
        path = os.pathsep.join([place, str(HERE), str(HERE.parent)])
        env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=HERE.parent, env=env, stdout=subprocess.PIPE, encoding="utf-8", check=False)


if __name__ == "__main__":
    done = run(sys.argv[1:])
    print(done.stdout)
    sys.exit(done.returncode)
