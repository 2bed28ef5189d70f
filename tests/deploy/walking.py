"""A reader who opens every kind of page of a board through one address, and notes each link that leads out of it."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx

_ALIKE = 3
"""Pages of one kind that are opened: of all systems three, of all views of a table three."""
_LINKS = ("href", "src", "srcset", "action", "formaction", "poster", "hx-get", "hx-post")
_CHANGING = ("action", "formaction", "hx-post")


class _Links(HTMLParser):
    """Every attribute that holds an address of a host, by the name of the attribute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Of other attributes only those that a person cannot have written: what is searched for may begin with "/".
        told = {name: text or "" for name, text in attrs if name in _LINKS or name.startswith("data-")}
        self.addresses += [(name, text) for name, text in told.items() if name in _LINKS or text.startswith("/")]


@dataclass
class Walk:
    """What was opened: the kinds of pages, links that lead out of the board, addresses that did not answer well."""

    pages: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def walk(client: httpx.Client, base: str) -> Walk:
    """Follow links from `base`, the address of the board, and no further than it reaches."""
    done, seen, kinds = Walk(), {f"{base}/"}, Counter[str]()
    waiting = deque(seen)
    while waiting:
        address = waiting.popleft()
        answer = client.get(address)
        if answer.status_code >= 400 or not str(answer.url).startswith(base):
            done.broken.append(f"{answer.status_code} {address} -> {answer.url}")
        done.pages.append(address)
        if not re.search("html|xml", answer.headers["content-type"]):
            continue
        for name, link in _Links(answer.text).addresses:
            target = urljoin(str(answer.url), link).partition("#")[0]
            if urlsplit(target)[:2] != urlsplit(base)[:2]:
                continue  # another site
            if target != base and not target.startswith((f"{base}/", f"{base}?")):
                done.outside.append(f"{name}={link} on {address}")
            elif target not in seen and name not in _CHANGING and kinds[kind_of(target)] < _ALIKE:
                kinds[kind_of(target)] += 1
                seen.add(target)
                waiting.append(target)
    return done


def kind_of(address: str) -> str:
    """What pages of one kind share: the path without names, and which parameters there are."""
    parts = urlsplit(address)
    path = re.sub(
        r"/(s|subsets|submissions|jobs|audit|policy)/[^/]+?(?=\.(?:csv|tex|json|bib|svg|xml)$|/|$)",
        r"/\1/…",
        parts.path,
    )
    return f"{path}?{'&'.join(sorted({part.partition('=')[0] for part in parts.query.split('&')}))}"


def sign_in(client: httpx.Client, base: str, token: str) -> None:
    """Give the browser a session, through the form as a person does."""
    page = client.get(f"{base}/sign-in").text
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    answer = client.post(f"{base}/sign-in", data={"form_token": found[1], "token": token})
    assert str(answer.url) == f"{base}/mine", answer.text
