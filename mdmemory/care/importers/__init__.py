"""What others keep, as files, conversations and a report of what has no place here: a small module for each."""
