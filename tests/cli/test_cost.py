"""`earmark cost` from the command line, in real processes."""

from __future__ import annotations

import json

import pytest

from earmark.cli import main


def test_a_table_for_people_and_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "logmel", "--repeats", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["name"] == "logmel"
    assert found["parameters"] == 0
    assert found["real_time_factor"] > 0


def test_one_bad_name_does_not_cost_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "logmel,lgomel", "--repeats", "1"]) == 1
    said = capsys.readouterr()
    assert "logmel" in said.out
    assert 'Did you mean "logmel"?' in said.err
