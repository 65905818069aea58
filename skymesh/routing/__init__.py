"""From what a producer pushes to rows that algorithms take.

`splitter` checks, judges and numbers rows; `pending` puts them in the order of event time; `encoder` turns their
columns into what kernels read; `planner` picks the algorithm of a query.
"""
