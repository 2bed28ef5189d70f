"""No socket of any kind leads out of a sealed cell: servers of the test's own hear nothing."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.blind.red_team.cells import attempt, sealed_cell, stopped


@contextlib.contextmanager
def listening(family: int, kind: int, address: object) -> Iterator[socket.socket]:
    with socket.socket(family, kind) as server:
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(0.3)
        yield server


def heard(server: socket.socket) -> bool:
    try:
        if server.type == socket.SOCK_STREAM:
            server.accept()[0].close()
        else:
            server.recv(100)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(("do", "kind"), [("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)])
def test_no_packet_reaches_a_server_of_this_machine(inside, outside, do, kind):
    with listening(socket.AF_INET, kind, ("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert stopped(attempt(inside, do, port=port))
        assert not heard(server)
        assert not stopped(attempt(outside, do, port=port))
        assert heard(server)


def test_no_abstract_socket_is_reached(inside, outside):
    name = f"@earmark-red-team-{os.getpid()}"
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name[1:]) as server:
        assert stopped(attempt(inside, "unix", address=name))
        assert not heard(server)
        assert not stopped(attempt(outside, "unix", address=name))
        assert heard(server)


def test_no_socket_in_a_folder_is_reached_even_where_the_folder_is_readable(outside, tmp_path):
    address = str(Path(os.path.relpath(tmp_path)) / "s")
    address = str(tmp_path / "s") if len(str(tmp_path)) < 90 else address
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, address) as server, sealed_cell([tmp_path]) as cell:
        assert attempt(cell, "look", path=str(tmp_path))["got"] == ["s"]
        assert stopped(attempt(cell, "unix", address=address))
        assert not heard(server)
        assert not stopped(attempt(outside, "unix", address=address))
        assert heard(server)


def test_no_name_is_resolved(inside, outside):
    assert stopped(attempt(inside, "resolve"))
    assert attempt(outside, "resolve")["got"] in ("127.0.0.1", "::1")


def test_a_query_to_a_name_server_does_not_leave(inside):
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as server:
        assert stopped(attempt(inside, "udp", port=server.getsockname()[1]))
        assert not heard(server)


def test_no_socket_can_be_made_at_all(inside, outside):
    families = {
        "inet": (socket.AF_INET, socket.SOCK_STREAM),
        "inet6": (socket.AF_INET6, socket.SOCK_STREAM),
        "unix": (socket.AF_UNIX, socket.SOCK_STREAM),
        "netlink": (socket.AF_NETLINK, socket.SOCK_RAW),
    }
    for family, kind in families.values():
        result = attempt(inside, "make_socket", family=int(family), kind=int(kind))
        assert result["stopped"] == "PermissionError"
        assert not stopped(attempt(outside, "make_socket", family=int(family), kind=int(kind)))
    for do in ("listen", "socket_pair"):
        assert attempt(inside, do)["stopped"] == "PermissionError"
        assert not stopped(attempt(outside, do))
