"""What a start costs: `import mdmemory` and `mdmemory --help` as multiples of a Python that does nothing.

python benchmarks/imports.py [ROUNDS]     exits with 1 when a limit is passed
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from statistics import median

from timing import Figure, cpu_of_command, interleave, judge, ratios, table

FLOOR = "python -c pass"
COMMANDS = {
    FLOOR: ["-c", "pass"],
    "import mdmemory": ["-c", "import mdmemory"],
    "mdmemory --help": [
        "-c",
        "import sys; from mdmemory.__main__ import main; sys.exit(main())",
        "--help",
    ],  # what pip installs as `mdmemory`
}
LIMITS = {"import mdmemory": 4.5, "mdmemory --help": 6.0}


def main(rounds: int) -> int:
    """Print the table and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as bytecode:  # bytecode is written even where the environment forbids it: users have it too
        env = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        cases = {name: partial(cpu_of_command, [sys.executable, *arguments], env) for name, arguments in COMMANDS.items()}
        samples = interleave(cases, rounds)
    times = ratios(samples, FLOOR)
    rows = [(f"`{name}`", f"{1000 * median(samples[name]):.1f}", f"{times[name]:.2f}") for name in COMMANDS]
    print(table(["CPU time", "ms", f"times `{FLOOR}`"], rows), end="\n\n")
    return judge([Figure(f"`{name}` ÷ `{FLOOR}`", times[name], limit) for name, limit in LIMITS.items()])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 21))
