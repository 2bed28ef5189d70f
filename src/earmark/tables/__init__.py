"""One `Table` with its writers, the CSV reader and writer, the text aligner and the number format.

Table([Column("system", "left"), Column("P@1", unit="%", format=NumberFormat(1, percent=True))], rows).to_text()
"""

from earmark.tables._table import Cell, Column, Table
from earmark.tables._text import aligned, one_line, plain
from earmark.tables.files import (
    CsvLine,
    csv_cell,
    csv_text,
    decode_text,
    no_formula,
    parquet_bytes,
    read_bytes,
    read_csv,
    read_csv_records,
    read_text,
    write_columns,
    write_csv,
)
from earmark.tables.latex import Page
from earmark.tables.numbers import MINUS, MISSING, NumberFormat, exact_texts, p_value_text

__all__ = [
    "MINUS",
    "MISSING",
    "Cell",
    "Column",
    "CsvLine",
    "NumberFormat",
    "Page",
    "Table",
    "aligned",
    "csv_cell",
    "csv_text",
    "decode_text",
    "exact_texts",
    "no_formula",
    "one_line",
    "p_value_text",
    "parquet_bytes",
    "plain",
    "read_bytes",
    "read_csv",
    "read_csv_records",
    "read_text",
    "write_columns",
    "write_csv",
]
