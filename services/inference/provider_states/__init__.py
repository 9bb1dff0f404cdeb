"""The state of providers as seen by all workers of a data folder, for administrators.

`observation` collects the observations of one worker, `shared_folder` shares them between workers,
`merging` merges those of all workers, `testing` tests providers and their keys, and `servicer` is
the gRPC servicer.
"""
