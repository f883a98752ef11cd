"""Keeps notes in a file next to this script."""
import json
import pathlib

FILE = pathlib.Path(__file__).with_name("data") / "notes.json"


def list_notes(tag: str = "") -> list[dict]:
    """All notes, or those with a tag."""
    notes = json.loads(FILE.read_text())
    return [n for n in notes if not tag or tag in n["tags"]]


def get_note(number: int) -> dict:
    """One note by its number, counted from 1."""
    notes = list_notes()
    if not 1 <= number <= len(notes):
        raise IndexError(f"there are notes 1 to {len(notes)}")
    return notes[number - 1]
