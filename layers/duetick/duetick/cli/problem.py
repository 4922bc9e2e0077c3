"""What a person at the terminal can do something about."""


class Problem(Exception):
    """Ends the command with its message and without a stack."""
