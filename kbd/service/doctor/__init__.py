"""Checks of an installation, each with its remedy; they look and change nothing.

check    what a check says
graphs   typed graphs: their size, and what it asks for
ground   the state directory, its file system, versions
running  ledger, daemon, clock, file events
reading  knowledge files and sources
"""
