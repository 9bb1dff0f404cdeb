"""Read and write locks on memories, shared by all processes."""
