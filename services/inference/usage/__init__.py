"""Usage records: the tokens and costs of requests, without any of their texts.

`metering` writes the usage of a request to a journal (`journal`), before the answer ends. In the
background `recorder` turns the lines of the journal into records with costs (`records`), and sends
them to the accounts service. The lines of a killed process are sent by another process of the same
data folder, or after the next start.
"""
