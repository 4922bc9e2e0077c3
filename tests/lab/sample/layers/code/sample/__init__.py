"""The code layer of the sample stack."""
