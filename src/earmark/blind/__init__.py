"""Blind evaluation: models of strangers, measured on recordings that they may not have.

    package --> checks --> rehearsal (synthetic sounds) --> measurement (blind recordings) --> policy --> board
                refused     fixed words leave               fixed words leave                  figures leave

Everything of the stranger's that runs, runs in a sealed cell (`earmark.isolation`). Scores are made on the host's
side; what may leave is decided by one `Policy`, and every release is an entry of a `Ledger` that the owners of the
recordings read and sign.
"""
