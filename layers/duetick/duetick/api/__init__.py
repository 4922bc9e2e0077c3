"""The HTTP API of schedules: operations, bodies, answers, and the OpenAPI document.

Only `functions/schedules` imports this: pydantic costs a cold start.
"""
