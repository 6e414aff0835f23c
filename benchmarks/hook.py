"""What a coding agent waits for at each prompt: the hook's whole process, as a multiple of a Python that imports two modules.

python benchmarks/hook.py [ROUNDS]     exits with 1 when the limit is passed

The folder has 1,000 files which the cache knows; each prompt is the first of its session, so that a hint is made and written down.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from statistics import median

import corpus
from timing import Figure, cpu_of_command, interleave, judge, ratios, table

SIZE = 1_000
FLOOR, HINT, NOTHING, START = "python -c 'import asyncio, sqlite3'", "a prompt, hinted", "a prompt without a hint", "session start"
PROMPT = f"What do we know about {corpus.queries(SIZE, 1)[0]}, and who asked for it?"
LIMIT = 5.0


def main(rounds: int) -> int:
    """Print the table and say by the exit code whether the limit holds."""
    numbers = count()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "notes"
        corpus.fill(folder, SIZE)
        # bytecode is written even where the environment forbids it: users have it too
        env = {**os.environ, "PYTHONPYCACHEPREFIX": f"{place}/bytecode", "XDG_CACHE_HOME": f"{place}/cache", "HOME": place}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        start = [sys.executable, "-c", "from mdmemory.__main__ import main; main()"]  # what pip installs as `mdmemory`

        def hook(event: str, **given: str) -> float:
            asked = json.dumps({"session_id": f"session {next(numbers)}", **given}).encode()
            return cpu_of_command([*start, "hook", event, "-f", str(folder)], env, asked)

        first = [*start, "hook", "user-prompt", "-f", str(folder)]
        answer = subprocess.check_output(first, input=json.dumps({"prompt": PROMPT}), env=env, text=True)
        assert "<memory-hint>" in answer, "the prompt of this benchmark brings no hint"
        cases = {
            FLOOR: lambda: cpu_of_command([sys.executable, "-c", "import asyncio, sqlite3"], env),
            HINT: lambda: hook("user-prompt", prompt=PROMPT),
            NOTHING: lambda: hook("user-prompt", prompt="Xyzzy?"),
            START: lambda: hook("session-start"),
        }
        samples = interleave(cases, rounds)
    times = ratios(samples, FLOOR)
    rows = [(name, f"{1000 * median(samples[name]):.1f}", f"{times[name]:.2f}") for name in cases]
    print(table(["CPU time", "ms", f"times `{FLOOR}`"], rows), end="\n\n")
    return judge([Figure(f"{HINT}, {SIZE:,} files ÷ `{FLOOR}`", times[HINT], LIMIT)])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 21))
