"""Your flows. Duetick finds every `Flow` in a module of this package."""
