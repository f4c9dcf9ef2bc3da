"""Runs one recipe of the ledger's pages in the current directory and prints its results, one row per line.

usage: recipe.py sql|duckdb < the recipe
"""

import pathlib
import sqlite3
import sys


def sql(text):
    connection = sqlite3.connect("file:tokenmeter.db?mode=ro", uri=True)
    rows = []
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            rows = connection.execute(statement).fetchall()
            statement = ""
    return rows


def duckdb(text):
    import duckdb
    import duckdb_extension_sqlite_scanner as extension

    connection = duckdb.connect()
    [file] = pathlib.Path(extension.__file__).parent.glob("extensions/*/sqlite_scanner.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
    return connection.execute(text).fetchall()


rows = {"sql": sql, "duckdb": duckdb}[sys.argv[1]](sys.stdin.read())
for row in rows:
    print("\t".join("" if cell is None else str(cell) for cell in row))
