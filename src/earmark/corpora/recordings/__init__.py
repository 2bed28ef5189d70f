"""Recorded sound from packages of Debian: found where it is installed, or fetched with apt; never redistributed."""
