"""The product that a walk runs on, unless it brings flows of its own."""

from tests.integration.conftest import running

__all__ = ["running"]
