"""What coding agents' hooks are answered: the index at the start of a session, a hint on a prompt, the journal at the stop."""
