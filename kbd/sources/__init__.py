"""What agents write on disk: one module per format, found by the registry.

To add an agent, add one module with a `FORMAT` (a `kbd.sources.contract.SourceFormat`); nothing else changes. Decoders
are pure: records in, agent-written messages out. They keep no files and no clock; what one must remember between two
runs is in its `state()`.
"""
