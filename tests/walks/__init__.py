"""The source documents, each done with Duetick: what a reader of one came for, step by step."""
