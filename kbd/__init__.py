"""kbd: a daemon that gives each lesson of an AI agent a life."""

__version__ = "0.1.0"
