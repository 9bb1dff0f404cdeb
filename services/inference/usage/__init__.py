"""Usage records: what requests used and cost, without any of their texts.

`metering` notes what one request used, in a line of the journal (`journal`) that is written before
the request's answer ends. In the background `recorder` makes records of the lines (`records`), with
their costs, and sends them to the accounts service. What a process that was killed leaves is sent
by another of the data folder, or after the next start.
"""
