"""How providers are doing, over all workers of a data folder, for administrators.

`observation` is what one worker has seen, `shared_folder` where workers tell each other, `merging`
makes one of what all have seen, `servicer` is the gRPC service.
"""
