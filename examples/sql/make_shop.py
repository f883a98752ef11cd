"""Make the database that the SQL tools of this folder ask."""

import sqlite3
from pathlib import Path

path = Path(__file__).with_name("shop.sqlite")
path.unlink(missing_ok=True)
shop = sqlite3.connect(path)
shop.executescript(
    """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, joined DATE);
    INSERT INTO customers VALUES
        (1, 'Ada', 'Oslo', '2024-05-14'), (2, 'Bo', 'Ulm', '2025-01-31'), (3, 'Cleo', 'Oslo', NULL);
    CREATE TABLE orders (number INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers (id), total TEXT);
    INSERT INTO orders VALUES (7, 1, '12.50'), (8, 3, '3.00');
    """
)
shop.close()
print("made", path.name)
