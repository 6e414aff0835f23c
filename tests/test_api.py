"""The public names, pinned: adding or dropping one is a decision, and shows in a diff of this file."""

import mdmemory

NAMES = """Append Config Conflict Context Create Delete Hint Match MdmemoryError Memory MemoryFile MemoryFolder Message
Model Mount Rename Replace ScriptedModel Session Tool ToolResult Toolset Turn
open_memory read_only""".split()


def test_the_public_names_are_these_and_all_of_them_are_there() -> None:
    """`__all__` is this list, `dir` shows it, and every name on it can be had."""
    assert mdmemory.__all__ == NAMES and set(NAMES) <= set(dir(mdmemory))
    assert [name for name in NAMES if not hasattr(mdmemory, name)] == []
