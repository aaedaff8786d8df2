"""The typed graph on disk: its log, its schema, changes that are refused or written whole, questions and checks.

`reading.py` opens a graph as a view, `changing.py` is the one way to write to a log, `checking.py` looks a whole log
over, `past.py` goes back in it and compacts it, `schemas.py` reads the schema, `schema_writing.py` extends it,
`skills.py` reads the contracts of skills.
"""
