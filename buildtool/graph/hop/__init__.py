"""Rewrites a network that runs on a sliding window, so that a run computes only what the last run did not.

A window holds the last rows of a signal, one row for each moment in time. A hop moves the window forward by
some rows, and the network runs once per hop. Most rows of most tensors then have values that the last run
had, too, some rows further down. The rewrite makes a network with state: its input is the new rows, rings
keep the rows that later runs read again, and its operators compute the other rows.
"""
