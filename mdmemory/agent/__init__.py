"""What an agent sees and does: tools, selector, hints, session, turn."""
