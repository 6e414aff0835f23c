"""Doors for frameworks: each a thin module over the public names, with an extra of its own."""
