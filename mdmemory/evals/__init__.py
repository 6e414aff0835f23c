"""Measuring recall on public conversations: one memory file per session, no model and no network."""
