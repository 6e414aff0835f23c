"""What keeps a folder well."""
