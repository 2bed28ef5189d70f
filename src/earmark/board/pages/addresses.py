"""The addresses of the reading pages."""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["board_address", "subset_address", "system_address"]


def board_address(board: str) -> str:
    return f"/b/{quote(board, safe='')}"


def system_address(board: str, slug: str) -> str:
    return f"{board_address(board)}/s/{quote(slug, safe='')}"


def subset_address(board: str, subset: str) -> str:
    """The page of a subset; the one without a name, which stands for all clips, is "-"."""
    return f"{board_address(board)}/subsets/{quote(subset or '-', safe='')}"
