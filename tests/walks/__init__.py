"""The source documents, each done with Duetick: the wishes of its reader, step by step."""
