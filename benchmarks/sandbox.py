"""What a memory in a sandbox costs, in Docker and in E2B, beside a backend that makes one call a file.

python benchmarks/sandbox.py [FILES ...]     Docker needs an engine: eval "$(scripts/start-docker)"
"""

from __future__ import annotations

import sys

import sandbox_docker
import sandbox_e2b

SIZES = (10, 100, 1_000)

if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    over = [sandbox_docker.main(sizes)]
    print()
    over.append(sandbox_e2b.main(sizes))
    sys.exit(max(over))
