"""Planners of other input than the usual text lines of `kvref.server.planner`."""
