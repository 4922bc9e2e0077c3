"""The HTTP API of schedules: its operations, what they take and answer, and its OpenAPI document.

Only `functions/schedules` imports this: pydantic costs a cold start.
"""
