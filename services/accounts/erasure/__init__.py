"""Erasures of users' data.

An erasure begins in the transaction that deletes the user and the user's keys, so that nothing new
is stored. A sweeper then removes what every service stores of the user, in batches, each of which
is counted in its own transaction. The erasure is finished after a pass that found nothing. Further
passes follow for a day, since requests that were in progress may have stored something meanwhile.
"""
