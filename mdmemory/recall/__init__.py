"""Finding: tokens, candidates, scores that explain themselves."""
