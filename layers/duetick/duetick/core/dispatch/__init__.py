"""Dispatch: deliver one occurrence."""

from duetick.core.dispatch.calls import Request, about_call, request_of
from duetick.core.dispatch.dispatcher import Dispatcher
from duetick.core.dispatch.resolving import ResolveContext

__all__ = ["Dispatcher", "Request", "ResolveContext", "about_call", "request_of"]
