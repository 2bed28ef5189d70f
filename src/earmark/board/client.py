"""The client of a board lives in `earmark.submissions.client`; this name of version 0.1 still works."""

from earmark.submissions.client import BoardClient, BoardRefusal, Receipt, checked_address, sends_in_the_open

__all__ = ["BoardClient", "BoardRefusal", "Receipt", "checked_address", "sends_in_the_open"]
