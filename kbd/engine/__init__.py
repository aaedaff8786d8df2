"""One pass of kbd, in the order of the data: knowledge, transcripts, lifecycle, projection.

frame      what lives as long as the process, and what a pass reports
transcripts  which files to look into, and reading them
writing    decay, archive moves, counters and relations into files
passes     the pass itself
"""

from kbd.engine.frame import Clock, PassReport
from kbd.engine.passes import Engine

__all__ = ["Clock", "Engine", "PassReport"]
