"""Your flows: every `Flow` in a module of this package is found by itself."""
