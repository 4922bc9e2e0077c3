"""Trigger=managed: EventBridge Scheduler has a bell for each row, and rings when it is due."""
