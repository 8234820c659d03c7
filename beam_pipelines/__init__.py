"""Apache Beam jobs over corpora: filtering, deduplication, sharding and word counts.

Every job is a PTransform plus a thin function that runs it, written for
any Beam runner and tried on the direct one. Records travel in
batches (lists) between the steps, because a step costs Beam some microseconds an element: as much
as the work on a short sentence. This file imports nothing, so that `labse ... --help` stays quick.
"""
