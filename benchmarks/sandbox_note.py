"""The memory file of the sandbox benchmarks: 2 KB, as agents write them."""

from __future__ import annotations

NOTE = "---\nname: Note {n}\ndescription: what is known of subject {n}\ntype: project\n---\n\n" + "some words on it " * 110 + "\n"
