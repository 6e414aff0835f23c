"""The wordings of Anthropic's memory tool, `memory_20250818`: as its documentation has them, and as its Python SDK does. Floor 4.

Models were trained on the first; programs that match the SDK's strings need the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Dialect = Literal["docs", "sdk"]

_DOCS: Final[Mapping[str, str]] = {
    "listing": "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:",
    "content": "Here's the content of {path} with line numbers:",
    "created": "File created successfully at: {path}",
    "replaced": "The memory file has been edited.",
    "inserted": "The file {path} has been edited.",
    "deleted": "Successfully deleted {path}",
    "renamed": "Successfully renamed {path} to {new_path}",
    "view_absent": "The path {path} does not exist. Please provide a valid path.",
    "replace_absent": "Error: The path {path} does not exist. Please provide a valid path.",
    "replace_folder": "Error: The path {path} does not exist. Please provide a valid path.",
    "insert_absent": "Error: The path {path} does not exist",
    "insert_folder": "Error: The path {path} does not exist",
    "absent": "Error: The path {path} does not exist",
    "exists": "Error: File {path} already exists",
    "taken": "Error: The destination {new_path} already exists",
    "no_match": "No replacement was performed, old_str `{old}` did not appear verbatim in {path}.",
    "matches": (
        "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
    ),
    "bad_line": ("Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {last}]"),
    "too_long": "File {path} exceeds maximum line limit of 999,999 lines.",
    "outside": "Path must start with /memories, got: {path}",
    "escape": "Path {path} would escape /memories directory",
    "delete_root": "Cannot delete the /memories directory itself",
    "rename_root": "Cannot rename the /memories directory itself",
    "unsupported": "Unsupported file type for {path}: {reason}",
}
_SDK: Final[Mapping[str, str]] = {
    **{key: text.removeprefix("Error: ") for key, text in _DOCS.items()},
    "listing": "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:",
    "replaced": "The memory file has been edited. Here is the snippet showing the change (with line numbers):",
    "replace_folder": "The path {path} is not a file.",
    "insert_absent": "The path {path} does not exist. Please provide a valid path.",
    "insert_folder": "The path {path} is not a file.",
    "bad_line": "Invalid `insert_line` parameter: {line}. It should be within the range [0, {last}].",
}
WORDINGS: Final[Mapping[Dialect, Mapping[str, str]]] = {"docs": _DOCS, "sdk": _SDK}


def worded(dialect: Dialect, key: str, **values: object) -> str:
    """A text of the contract; what no UTF-8 can hold is escaped in it."""
    return WORDINGS[dialect][key].format(**values).encode("utf-8", "backslashreplace").decode()


def human_size(size: int, dialect: Dialect) -> str:
    """Bytes as `512B`, `4.0K` or `1.2M`; the SDK leaves out `.0`."""
    power = max(0, size.bit_length() - 1) // 10
    text = f"{size / 1024**power:.1f}"
    return (text.removesuffix(".0") if not power or dialect == "sdk" else text) + "BKMG"[power]
