"""The conformance suite that every backend runs, ours and yours."""
