"""What lies in the folder: pure functions over bytes and text."""
