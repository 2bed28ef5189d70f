"""Users as the actions of `earmark board` name them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from earmark.board.records import User
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.wording import counted, first_of

if TYPE_CHECKING:
    from earmark.board.storage import Store

_NAMED = 5


def find_user(store: Store, name: str) -> User:
    """The user of that name, or InputError."""
    user = store.user(name)
    if user is None:
        names = [other.name for other in store.users()]
        raise InputError(f"There is no user {name!r}; `earmark board users` lists them.{did_you_mean(name, names)}")
    return user


def moderator_of(args: argparse.Namespace, store: Store) -> User:
    """Who acts: the one that --as names, else the only moderator."""
    from earmark.board.storage.accounts import PAPERS

    if args.moderator:
        return find_user(store, args.moderator)
    moderators = [user for user in store.users() if user.moderates and user.name != PAPERS]
    if len(moderators) != 1:
        if not moderators:
            raise UsageError("There is no moderator yet; make one with `earmark board user NAME --moderator`.")
        names = first_of([user.name for user in moderators], _NAMED)
        raise UsageError(f"Say with --as who decides: {names} may, {counted(len(moderators), 'moderator')}.")
    return moderators[0]
