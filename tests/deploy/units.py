"""What a systemd unit says, and the same command line under the same restrictions without systemd."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CODE = (ROOT, Path(sys.prefix), Path(sys.base_prefix))
"""What has to be seen to run Earmark from this checkout; on a host all of it lies in /opt/earmark and /usr."""
STATE = Path("/var/lib")
_HOMES = ("/home", "/root", "/run/user")


@dataclass(frozen=True)
class Unit:
    """The directives of a unit file in their order, each with everything that is said for it."""

    directives: dict[str, list[str]]

    @classmethod
    def read(cls, name: str) -> Unit:
        directives: dict[str, list[str]] = {}
        for line in (DEPLOY / name).read_text("utf-8").splitlines():
            key, said, value = line.partition("=")
            if said and not line.startswith(("#", ";")):
                directives.setdefault(key.strip(), []).append(value.strip())
        return cls(directives)

    def value(self, name: str) -> str:
        return self.directives.get(name, [""])[-1]

    @property
    def command(self) -> list[str]:
        return shlex.split(self.value("ExecStart"))

    @property
    def state(self) -> Path:
        return STATE / self.value("StateDirectory")

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the unit; those of its files win, and a file with "-" may be missing."""
        lines = [word for line in self.directives.get("Environment", []) for word in shlex.split(line)]
        for file in self.directives.get("EnvironmentFile", []):
            if not file.startswith("-") or Path(file[1:]).exists():
                lines += Path(file.removeprefix("-")).read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))

    def confined(self) -> list[str]:
        """The command in bubblewrap: nothing may be written but the state, and no right can be had back."""
        given = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all"]
        given += ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-ipc", "--dev-bind", "/", "/"]
        if self.value("ProtectSystem") == "strict":
            given[-3:] = ["--ro-bind", "/", "/"]
        if self.value("PrivateDevices") == "yes":
            given += ["--dev", "/dev"]
        hidden = [Path("/tmp"), Path("/var/tmp")] if self.value("PrivateTmp") == "yes" else []
        hidden += [Path(home) for home in _HOMES if Path(home).exists()] if self.value("ProtectHome") == "yes" else []
        for folder in hidden:
            given += ["--tmpfs", str(folder)]
        for folder in CODE:
            if any(folder.is_relative_to(each) for each in hidden):
                given += ["--ro-bind", str(folder), str(folder)]
        if self.value("CapabilityBoundingSet") == "":
            given += ["--cap-drop", "ALL"]
        return [*given, "--bind", str(self.state), str(self.state), "--chdir", "/", *self.command]
