"""Write a schema in the common subset of all providers, and report a loss for each rule that it cannot express.

The result is a reference, or `anyOf` alone, or exactly one type with its keywords. Schemas that apply to the same value (a
reference and the keywords beside it, the members of `allOf`, a branch and the keywords beside its list) are merged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, cast

from toolcrib.lib.export_schemas import phrases
from toolcrib.lib.export_schemas.objects import ARRAY_SAID, OBJECT_SAID, write_array, write_object
from toolcrib.lib.export_schemas.subschemas import (
    ANNOTATIONS,
    LARGEST,
    SILENT,
    SMALLEST,
    References,
    common_types,
    hinted_types,
    is_of,
    listed,
    listed_values,
    strictest,
    type_of,
)
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.lib.export_schemas import Json, Target
    from toolcrib.lib.export_schemas.subschemas import Losses, Node, Subschema
    from toolcrib.lib.schema_structure import Place

    Choice = frozenset[tuple[Place, str]]
    Key = tuple[tuple[Place, ...], Choice]

MAX_TURNS = 3
MAX_FORMS = 4_000
MAX_UNFOLDED = 20_000
MAX_DEPTH = 64
ANYTHING = ("string", "number", "boolean", "null")
ALTERNATIVES = ("anyOf", "oneOf")
SAID = ("examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType")


class Bounds:
    """Writes the keywords of one type that limit a value without subschemas."""

    NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format")
    OF: ClassVar[dict[str, tuple[str, ...]]] = {
        "string": ("minLength", "maxLength", "pattern", "format"),
        "integer": NUMBERS,
        "number": NUMBERS,
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }
    KEYWORDS = frozenset(keyword for keywords in OF.values() for keyword in keywords)

    def __init__(self, writer: Writer, parts: list[Subschema], form: Json, notes: list[str]) -> None:
        self.writer = writer
        self.parts = parts
        self.form = form
        self.notes = notes

    def write(self, name: str) -> None:
        """Write the limits of a type; those that the target does not enforce are added to the notes."""
        present = {keyword for part in self.parts for keyword in part.schema}
        for keyword in self.OF.get(name, ()):
            if keyword not in present:
                continue
            said = strictest(self.parts, keyword)
            put = bool(said) and self._put(name, keyword, said[0][1])
            for part, value in said:
                if put and (keyword in LARGEST | SMALLEST or value == said[0][1]):
                    continue
                self.notes.append(phrases.say(keyword, said[0][1] if keyword in LARGEST | SMALLEST else value))
                self.writer.losses.add(part.place, keyword, self.writer.unenforced(self.notes[-1]))

    def _put(self, name: str, keyword: str, value: object) -> bool:
        """Add the limit to the form, if the target enforces it."""
        target = self.writer.target
        if name == "integer" and keyword.startswith("exclusive") and keyword not in target.keywords:
            return self._put_inclusive(keyword, cast("float", value))
        if keyword not in target.keywords:
            return False
        if keyword == "format" and target.formats is not None and value not in target.formats:
            return False
        if keyword == "minItems" and cast("float", value) > target.most_least_items:
            return False
        self.form[keyword] = value
        return True

    def _put_inclusive(self, keyword: str, value: float) -> bool:
        """Write an exclusive limit of integers as an inclusive one: above 1.5 means from 2."""
        if keyword == "exclusiveMinimum" and "minimum" in self.writer.target.keywords:
            least = math.floor(value) + 1
            self.form["minimum"] = max(least, cast("float", self.form.get("minimum", least)))
            return True
        if keyword == "exclusiveMaximum" and "maximum" in self.writer.target.keywords:
            most = math.ceil(value) - 1
            self.form["maximum"] = min(most, cast("float", self.form.get("maximum", most)))
            return True
        return False


KNOWN = frozenset((*SILENT, *ANNOTATIONS, *ALTERNATIVES, *SAID, *Bounds.KEYWORDS, *OBJECT_SAID, *ARRAY_SAID))
KNOWN |= {"type", "enum", "const", "not", "if", "then", "else", "properties", "required", "additionalProperties"}
KNOWN |= {"unevaluatedProperties", "items", "prefixItems", "additionalItems", "minContains", "maxContains"}


class Writer:
    """Writes one schema for one target."""

    def __init__(self, target: Target, root: Mapping[str, object], losses: Losses) -> None:
        self.target = target
        self.losses = losses
        self.definitions: dict[str, Json] = {}
        self.reading = References(root)
        self._open: dict[Key, int] = {}
        self._names: dict[Key, str] = {}
        self._written = 0
        self._depth = 0

    def write_root(self, schema: Mapping[str, object]) -> Json:
        """The schema of all arguments, with the definitions that it needs."""
        form = self.write((), [((), schema)]) or {}
        if "$ref" in form:
            # The root must be an object itself; only recursive references inside it refer to the definition.
            form = dict(self.definitions[str(form["$ref"]).removeprefix("#/$defs/")])
        return {**form, "$defs": self.definitions} if self.definitions else form

    def write(
        self, at: Place, nodes: Iterable[Node], chosen: Choice = frozenset(), told: frozenset[Place] = frozenset()
    ) -> Json | None:
        """The form of the values that all these nodes accept; None if there are none.

        `chosen` are the alternatives that are already selected, `told` the places whose descriptions an outer form has.
        """
        gathered = self.reading.gather(nodes)
        if gathered is None:
            return None
        parts, followed = gathered
        key = (tuple(part.place for part in parts), chosen)
        if parts and self.target.recursive and (key in self._open or key in self._names):
            return {"$ref": f"#/$defs/{self._name(key)}"}
        if self._must_stop(key, followed=followed):
            text = f"{self.target.label} takes no schema without end; deeper levels are left out"
            self.losses.add(at, "$ref", text)
            return None
        form = self._write_once(key, at, parts, told)
        if form is None or key not in self._names or key in self._open:
            return form
        self.definitions[self._names[key]] = form
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _write_once(self, key: Key, at: Place, parts: list[Subschema], told: frozenset[Place]) -> Json | None:
        self._spend()
        self._depth += 1
        turns = self._open.get(key, 0)
        self._open[key] = turns + 1
        try:
            return self._form(at, parts, key[1], told)
        finally:
            self._depth -= 1
            if turns:
                self._open[key] = turns
            else:
                del self._open[key]

    def _must_stop(self, key: Key, *, followed: bool) -> bool:
        if not followed and self._open.get(key, 0) == 0:
            return False
        return self._open.get(key, 0) >= MAX_TURNS or self._written > MAX_FORMS or self._depth >= MAX_DEPTH

    def _spend(self) -> None:
        self._written += 1
        if self._written > MAX_UNFOLDED:
            message = f"parameters: unfold to more than {MAX_UNFOLDED:,} subschemas; make them smaller"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        if self._depth > 2 * MAX_DEPTH:
            raise ToolError(Kind.VALIDATION, f"parameters: deeper than {2 * MAX_DEPTH} subschemas; flatten them")

    def _name(self, key: Key) -> str:
        """The name of the definition for the schema that is being written."""
        if key not in self._names:
            last = key[0][-1][-1:] or ("arguments",)
            word = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in last[0])[:40]
            taken = set(self._names.values())
            numbered = (f"{word}_{number}" for number in range(2, len(taken) + 3))
            self._names[key] = word if word not in taken else next(name for name in numbered if name not in taken)
        return self._names[key]

    def _form(self, at: Place, parts: list[Subschema], chosen: Choice, told: frozenset[Place]) -> Json | None:
        untold = [part for part in parts if part.place not in told]
        notes = self._say_whole(untold)
        undecided = [
            (part, keyword)
            for part in parts
            for keyword in ALTERNATIVES
            if isinstance(part.schema.get(keyword), list) and (part.place, keyword) not in chosen
        ]
        if undecided and self._written <= MAX_FORMS:
            form = self._alternatives(parts, *undecided[0], chosen, told)
        else:
            for part, keyword in undecided:
                self.lose(part, keyword, notes)
            form = self._by_type(at, parts, notes)
        return None if form is None else self._annotate(form, untold, notes)

    def _alternatives(
        self, parts: list[Subschema], part: Subschema, keyword: str, chosen: Choice, told: frozenset[Place]
    ) -> Json | None:
        branches = listed(part.place, part.schema, keyword)
        if keyword == "oneOf" and not _are_exclusive([branch for _, branch in branches]):
            text = f"{self.target.label} also accepts what fits more than one of them; they are offered as anyOf"
            self.losses.add(part.place, keyword, text)
        chosen |= {(part.place, keyword)}
        told |= {part.place for part in parts}
        forms: list[Json] = []
        for place, branch in branches:
            form = self.write(place, [*parts, (place, branch)], chosen, told)
            if form is None:
                continue
            inner = cast("list[Json]", form["anyOf"]) if form.keys() == {"anyOf"} else [form]
            forms.extend(each for each in inner if each not in forms)
        return _any_of(forms)

    def _by_type(self, at: Place, parts: list[Subschema], notes: list[str]) -> Json | None:
        values = listed_values(parts)
        names = self._types(at, parts, values)
        forms = []
        for name in names:
            own = None if values is None else [value for value in values if is_of(value, name)]
            said: list[str] = notes if len(names) == 1 else []
            form = self._typed(name, parts, own, said)
            if len(names) > 1 and said:
                form["description"] = phrases.join("", said)
            forms.append(form)
        return _any_of(forms)

    def _types(self, at: Place, parts: list[Subschema], values: list[object] | None) -> list[str]:
        names = common_types(parts)
        if values is not None:
            found = list(dict.fromkeys(map(type_of, values)))
            found = [name for name in found if name != "integer" or "number" not in found]
            if names is None:
                return found
            return [name for name in names if any(is_of(value, name) for value in values)]
        if names is not None:
            return names
        hinted = hinted_types(parts)
        offered = hinted or list(ANYTHING)
        text = f"it is not said, and {self.target.label} needs it; offered are {', '.join(offered)}"
        self.losses.add(parts[0].place if parts else at, "type", text)
        return offered

    def _typed(self, name: str, parts: list[Subschema], values: list[object] | None, notes: list[str]) -> Json:
        form: Json = {"type": name}
        if values is not None and name != "null":
            self._list_values(form, name, parts, values, notes)
        Bounds(self, parts, form, notes).write(name)
        if name == "object":
            write_object(self, parts, form, notes)
        if name == "array":
            write_array(self, parts, form, notes)
        return form

    def _list_values(
        self, form: Json, name: str, parts: list[Subschema], values: list[object], notes: list[str]
    ) -> None:
        if name in self.target.enums:
            form["enum"] = phrases.copy(values)
            return
        notes.append(phrases.say("enum", values))
        for part in parts:
            for keyword in ("enum", "const"):
                if keyword in part.schema:
                    self.losses.add(part.place, keyword, self.unenforced(notes[-1]))

    def _say_whole(self, parts: list[Subschema]) -> list[str]:
        notes: list[str] = []
        for part in parts:
            for keyword in part.schema:
                if keyword in SAID and part.schema[keyword]:
                    notes.append(phrases.say(keyword, part.schema[keyword]))
                if keyword not in KNOWN:
                    self.losses.add(part.place, keyword, f"{self.target.label} does not know it; it is left out")
            if part.schema.get("not", False) is not False:
                self.lose(part, "not", notes)
            if "if" in part.schema and part.schema.keys() & {"then", "else"}:
                words = [word for word in ("if", "then", "else") if word in part.schema]
                notes.append("; ".join(phrases.say(word, part.schema[word]) for word in words))
                self.losses.add(part.place, "if", self.unenforced(notes[-1]))
        return notes

    def _annotate(self, form: Json, parts: list[Subschema], notes: list[str]) -> Json:
        texts = [part.schema["description"] for part in parts if isinstance(part.schema.get("description"), str)]
        title = next((part.schema["title"] for part in parts if isinstance(part.schema.get("title"), str)), "")
        self._note_default(form, parts, notes)
        if not texts and not title and not notes:
            return form
        text = " ".join(dict.fromkeys(phrases.clean(str(text)) for text in texts))
        said = phrases.join(text, notes)
        if "$ref" in form:
            form = {"anyOf": [form]}
        inner = str(form.get("description", ""))
        whole = " ".join(filter(None, (said, inner)))
        said_of = {"title": phrases.clean(str(title)), "description": whole}
        return {**form, **{keyword: text for keyword, text in said_of.items() if text}}

    def _note_default(self, form: Json, parts: list[Subschema], notes: list[str]) -> None:
        for part in parts:
            if "default" not in part.schema:
                continue
            default = part.schema["default"]
            if default is None:
                # Providers treat null as no default.
                notes.append(phrases.say("default", None))
            elif "default" in self.target.keywords and _is_one_type(form):
                form.setdefault("default", phrases.copy(default))
            else:
                self.lose(part, "default", notes)

    def lose(self, part: Subschema, keyword: str, notes: list[str]) -> None:
        """Move a keyword of a part into the description."""
        notes.append(phrases.say(keyword, part.schema[keyword]))
        self.losses.add(part.place, keyword, self.unenforced(notes[-1]))

    def unenforced(self, note: str) -> str:
        """The text of a loss that the description mentions instead."""
        return f"{self.target.label} does not take it, so the description says: {note}"


def _any_of(forms: list[Json]) -> Json | None:
    if not forms:
        return None
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _is_one_type(form: Json) -> bool:
    """Whether a form has a single type besides null, so that it can have a default."""
    branches = cast("list[Json]", form.get("anyOf", [form]))
    return [branch.get("type") == "null" for branch in branches].count(False) == 1


def _are_exclusive(branches: list[object]) -> bool:
    """Whether no value can match two of the branches, because their types are disjoint."""
    seen: set[str] = set()
    for branch in branches:
        declared = branch.get("type") if isinstance(branch, dict) else None
        names = {declared} if isinstance(declared, str) else set(declared if isinstance(declared, list) else ())
        names = {"number" if name == "integer" else name for name in names}
        if not names or names & seen:
            return False
        seen |= names
    return True
