"""Apache Beam jobs over corpora: filtering, deduplication, sharding and word counts.

Every job is a PTransform plus a thin function that runs it, written for any Beam runner and tested
on the direct one. Records pass between steps in batches (lists), because each step costs Beam some
microseconds per element, as much as the work on a short sentence itself. This file imports nothing,
so that `labse ... --help` stays fast.
"""
