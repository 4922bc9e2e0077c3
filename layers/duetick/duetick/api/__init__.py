"""The HTTP API of schedules: operations, bodies, answers, and the OpenAPI document.

Only `functions/schedules` imports this. Pydantic costs a cold start: a call without a body and a
query loads none.
"""
