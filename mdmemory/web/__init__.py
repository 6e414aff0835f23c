"""The web page of a memory: `mdmemory serve`. Floor 6."""
