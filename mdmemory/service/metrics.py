"""What is measured, for Prometheus; of several workers, their sums. No user is named. Floor 7."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # the library's: where workers keep their numbers; set before it is imported
_QUICK_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_EXPECTED = {
    "refused": ("per_minute", "at_once", "streams"),
    "errors": ("/mcp", "/"),
    "storage": ("scan", "read", "commit"),
    "storage_failed": ("scan", "read", "commit"),
}


class Metrics:
    """The numbers of one worker; `text` gives those of all."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter("mdmemory_requests", "Requests answered.", ["route", "status"], registry=own)
        self.seconds = Histogram(
            "mdmemory_request_seconds", "How long answers took, without streams.", ["route"], registry=own, buckets=_QUICK_S
        )
        self.running = _gauge("mdmemory_requests_running", "Requests that are being answered, streams included.", own)
        self.refused = Counter("mdmemory_refused", "Requests refused for a limit of their user.", ["limit"], registry=own)
        self.unknown = Counter("mdmemory_unknown_tokens", "Requests with a token that is nobody's.", registry=own)
        self.errors = Counter("mdmemory_errors", "Requests that failed by no fault of the user.", ["route"], registry=own)
        self.open = _gauge("mdmemory_open_memories", "Memories that are open.", own)
        self.storage = Histogram(
            "mdmemory_storage_seconds", "How long the storage took, by verb.", ["verb"], registry=own, buckets=_QUICK_S
        )
        self.storage_failed = Counter(
            "mdmemory_storage_unavailable", "Calls that the storage did not answer.", ["verb"], registry=own
        )
        self.workers = _gauge("mdmemory_workers", "Worker processes that serve.", own)
        for counter, labels in _EXPECTED.items():
            for label in labels:
                getattr(self, counter).labels(label)  # which shows it as 0, so that a first one is seen as a rise
        if place := os.environ.get(SHARED):
            _reserve(Path(place))

    def text(self) -> bytes:
        """All numbers in Prometheus' text format."""
        registry = self._registry
        if os.environ.get(SHARED):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library says no types here
        return generate_latest(registry)


def _gauge(name: str, what: str, registry: CollectorRegistry) -> Gauge:
    return Gauge(name, what, registry=registry, multiprocess_mode="livesum")


def _reserve(place: Path) -> None:
    """Have the disk hold room for this process's numbers: one that is full later would kill it as it writes them (SIGBUS)."""
    for file in place.glob(f"*_{os.getpid()}.db"):
        with suppress(OSError, AttributeError), open(file, "r+b") as held:  # not every system can
            os.posix_fallocate(held.fileno(), 0, os.fstat(held.fileno()).st_size)
