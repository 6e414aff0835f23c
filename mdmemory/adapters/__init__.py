"""The memory in frameworks for agents: a thin module each, over the public API. Floor 7."""
