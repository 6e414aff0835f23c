"""Where the bytes are: three verbs, each one round trip."""
