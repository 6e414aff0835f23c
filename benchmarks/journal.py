"""What it costs to parse a journal of 10,000 entries, beside one pass of a regular expression over the same bytes.

python benchmarks/journal.py [ROUNDS]

The floor finds the first line of every entry and nothing else. All figures are CPU time.
"""

from __future__ import annotations

import re
import sys
from statistics import median

from timing import Figure, cpu_of_call, interleave, judge, ratios, table

from mdmemory.files.journal import entry_bytes, new_message, parse

ENTRIES, LIMIT = 10_000, 5.0
FLOOR, TALK, TOOLS = "one regular expression", "parse", "parse, tool calls and results"
HEAD = re.compile("^## (\\S+) · (\\S+ \\S+)Z · (\\S+)$".encode(), re.MULTILINE)
TEXT = "What people write in a chat is a line or two, now and then with a `name` or a list, and seldom more than that. "
CALL = {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "user/home.md"}'}}
ASKED = [{"role": "user", "content": TEXT * 2}, {"role": "assistant", "content": TEXT * 3}]
TRACE = [*ASKED, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
TRACE += [{"role": "tool", "tool_call_id": "call_1", "content": TEXT * 4}]


def main(rounds: int) -> int:
    """Print one table; the exit code says whether parsing a conversation took more than 5 times the floor."""
    talk, tools = (b"".join(entry_bytes(new_message(trace[n % len(trace)])) for n in range(ENTRIES)) for trace in (ASKED, TRACE))
    cases = {
        FLOOR: lambda: cpu_of_call(lambda: sum(1 for _ in HEAD.finditer(talk))),
        TALK: lambda: cpu_of_call(lambda: parse(talk)),
        TOOLS: lambda: cpu_of_call(lambda: parse(tools)),
    }
    samples = interleave(cases, rounds)
    found = ratios(samples, FLOOR)
    rows = [(name, f"{median(samples[name]) * 1000:.1f} ms", f"{found[name]:.1f}") for name in cases]
    print(table((f"{ENTRIES:,} entries, {len(talk) / 1e6:.1f} MB", "CPU", "times the floor"), rows), end="\n\n")
    return judge([Figure(f"{TALK} ÷ {FLOOR}", found[TALK], LIMIT)])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 15))
