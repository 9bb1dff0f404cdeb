"""What is kept: the database, leases in it, and files of the data folder."""
