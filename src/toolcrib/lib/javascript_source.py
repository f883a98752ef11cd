"""Find the functions, types, exports and top-level code of a JavaScript or TypeScript file, without running it.

This is not a full parser: top-level statements are recognised by their first tokens, and types are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.lib.javascript_tokens import NAME, SIGN, STRING, Tokens

if TYPE_CHECKING:
    from toolcrib.lib.javascript_tokens import Token

# A statement continues after a line that ends with one of these, or before one that begins with one of _CONTINUES.
_GOES_ON = frozenset(
    (
        *("=", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?", ":", ".", ",", "(", "[", "{", "<", ">"),
        *("=>", "&&", "||", "??", "===", "!==", "==", "!=", "<=", ">=", "**", "?.", "...", "+=", "-=", "*=", "/="),
    )
)
_CONTINUES = _GOES_ON - {"{", "!", "~", "..."}


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """A function: the token ranges of its parameters and its body, and the comment before it."""

    name: str
    parameters: range
    body: range
    line: int
    comment: str = ""
    result: range = range(0)


@dataclass(slots=True)
class Definitions:
    """The top-level definitions, exports and actions of a file."""

    functions: dict[str, Function] = field(default_factory=dict)
    values: dict[str, range] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)
    types: dict[str, range] = field(default_factory=dict)
    enums: dict[str, range] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    is_module: bool = False
    acts: list[int] = field(default_factory=list)
    guards: list[range] = field(default_factory=list)
    unseen: bool = False


class JavaScript(Tokens):
    """A file: its tokens, and its top-level definitions."""

    @cached_property
    def found(self) -> Definitions:
        """The top-level definitions, exports and actions, analysed on first use."""
        return Statements(self).read()


class Statements:
    """Classifies the top-level statements of a file."""

    def __init__(self, code: Tokens) -> None:
        self._code = code
        self._found = Definitions()

    def read(self) -> Definitions:
        """Process all statements."""
        index, count = 0, len(self._code.tokens)
        while index < count:
            index = max(self._statement(index), index + 1)
        return self._found

    def _statement(self, start: int) -> int:  # noqa: C901, PLR0911 - one case per kind of statement
        code, found = self._code, self._found
        token = code[start]
        text = token.text if token.kind == NAME else ""
        if token.text == ";":
            return start + 1
        if text == "import" and code[start + 1].text not in {"(", "."}:
            # `import x = require("y")` is TypeScript's syntax for CommonJS.
            found.is_module = found.is_module or code[start + 2].text != "="
            return self._end(start)
        if text == "export":
            found.is_module = found.is_module or code[start + 1].text != "="
            return self._export(start)
        if text in {"function", "async", "const", "let", "var", "class", "abstract"} and self._declares(start):
            return self._declaration(start)[1]
        if text in {"interface", "type", "declare", "namespace", "enum"} and code[start + 1].kind == NAME:
            return self._type(start)
        if token.text.startswith("@") and token.kind == NAME:
            return start + 1
        end = self._end(start)
        if token.kind == STRING and end <= start + 2:
            return end
        if text == "if" and self._is_guard(start):
            found.guards.append(range(start, end))
            return end
        if self._common_export(start, end):
            return end
        if not self._only_assigns(start, end):
            found.acts.append(start)
        return end

    def _declares(self, start: int) -> bool:
        following = self._code[start + 1].text
        return self._code[start].text != "async" or following == "function"

    def _declaration(self, start: int) -> tuple[list[str], int]:
        """Record the definitions of a declaration; returns their names, and where it ends."""
        code, found = self._code, self._found
        text = code[start].text
        if text in {"function", "async"}:
            function, end = self._function(start)
            if function is None:
                return [], self._end(start)
            found.functions[function.name] = function
            return [function.name], end
        if text in {"class", "abstract"}:
            end = self._block_end(start)
            name = code[start + 1].text if text == "class" else code[start + 2].text
            found.classes.add(name)
            return [name], end
        end = self._end(start)
        names: list[str] = []
        for part in code.split(range(start + 1, end - (code[end - 1].text == ";"))):
            variable = code[part.start]
            if variable.kind != NAME:
                continue
            names.append(variable.text)
            equals = next((index for index in part if code[index].text == "=" and self._is_direct(part, index)), None)
            if equals is None:
                continue
            value = range(equals + 1, part.stop)
            function = self._arrow(variable.text, value, start)
            if function is not None:
                found.functions[variable.text] = function
            else:
                found.values[variable.text] = value
        return names, end

    def _is_direct(self, part: range, index: int) -> bool:
        """Whether a token of a part is not inside nested brackets."""
        position = part.start
        while position < index:
            position = self._code.partners.get(position, position) + 1
        return position == index

    def _function(self, start: int) -> tuple[Function | None, int]:
        code = self._code
        index = start + (code[start].text == "async") + 1
        index += code[index].text == "*"
        name = ""
        if code[index].kind == NAME:
            name, index = code[index].text, index + 1
        index = self._skip_generics(index)
        if code[index].text != "(" or index not in code.partners:
            return None, start + 1
        close = code.partners[index]
        body = self._body(close + 1)
        if body is None:
            return None, start + 1
        return (
            Function(
                name=name,
                parameters=code.inside(index),
                body=code.inside(body),
                line=code[start].line,
                comment=self._comment(start),
                result=range(close + 2, body),
            ),
            code.partners[body] + 1,
        )

    def _body(self, index: int) -> int | None:
        """The brace that opens the body after a parameter list and an optional return type."""
        code = self._code
        if code[index].text == "{":
            return index
        if code[index].text != ":":
            return None
        index += 1
        is_type = True
        while index < len(code.tokens):
            text = code[index].text
            if text == "{" and not is_type:
                return index
            if text == ";":
                return None
            is_type = (
                text in {"|", "&", ":", "=>", "is", "extends", "<", ",", "keyof", "typeof"}
                and code[index].kind != STRING
            )
            index = code.partners.get(index, index) + 1
        return None

    def _arrow(self, name: str, value: range, start: int) -> Function | None:
        """A function expression that is assigned to a name."""
        code = self._code
        index = value.start
        if code[index].text == "async":
            index += 1
        if code[index].text == "function":
            function, _ = self._function(value.start)
            return (
                None
                if function is None
                else Function(
                    name=name,
                    parameters=function.parameters,
                    body=function.body,
                    line=function.line,
                    comment=self._comment(start),
                    result=function.result,
                )
            )
        index = self._skip_generics(index)
        if code[index].kind == NAME and code[index + 1].text == "=>":
            parameters, arrow = range(index, index + 1), index + 1
        elif code[index].text == "(" and index in code.partners:
            parameters, arrow = code.inside(index), code.partners[index] + 1
            if code[arrow].text == ":":
                arrow = next((at for at in range(arrow, value.stop) if code[at].text == "=>"), arrow)
        else:
            return None
        if code[arrow].text != "=>" or arrow >= value.stop:
            return None
        body = arrow + 1
        where = code.inside(body) if code[body].text == "{" else range(body, value.stop)
        return Function(
            name=name, parameters=parameters, body=where, line=code[start].line, comment=self._comment(start)
        )

    def _skip_generics(self, index: int) -> int:
        code = self._code
        if code[index].text != "<":
            return index
        depth = 0
        for at in range(index, min(index + 200, len(code.tokens))):
            depth += (code[at].text == "<") - (code[at].text == ">")
            if depth == 0:
                return at + 1
        return index

    def _export(self, start: int) -> int:  # noqa: C901, PLR0911 - one case per form of an export
        code, found = self._code, self._found
        following = code[start + 1].text
        if following == "default":
            return self._default(start)
        if following == "{":
            close = code.partners[start + 1]
            if code[close + 1].text == "from":
                for part in code.split(code.inside(start + 1)):
                    found.exports[code[part.stop - 1].text] = ""
                return self._end(start)
            for part in code.split(code.inside(start + 1)):
                found.exports[code[part.stop - 1].text] = code[part.start].text
            return self._end(start)
        if following == "*":
            found.unseen = True
            return self._end(start)
        if following in {"interface", "type", "declare", "namespace", "enum"} or (
            following == "const" and code[start + 2].text == "enum"
        ):
            return self._type(start + 1)
        if following == "=":  # export = main, of TypeScript
            found.exports["default"] = code[start + 2].text
            return self._end(start)
        names, end = self._declaration(start + 1)
        if start in code.comments:
            for name in names:
                if name in found.functions and not found.functions[name].comment:
                    found.functions[name] = _with_comment(found.functions[name], code.comments[start])
        found.exports |= {name: name for name in names}
        return end

    def _default(self, start: int) -> int:
        code, found = self._code, self._found
        value = start + 2
        if code[value].text in {"function", "async"}:
            function, end = self._function(value)
            if function is not None:
                name = function.name or "default"
                found.functions[name] = _with_comment(function, function.comment or code.comments.get(start, ""))
                found.exports["default"] = name
                return end
        end = self._end(start)
        arrow = self._arrow("default", range(value, end - (code[end - 1].text == ";")), start)
        if arrow is not None:
            found.functions["default"] = arrow
            found.exports["default"] = "default"
        elif (code[value].kind == NAME and code[value + 1].text in {";", ""}) or end <= value + 1:
            found.exports["default"] = code[value].text
        elif code[value].text == "class":
            found.exports["default"] = code[value + 1].text
            found.classes.add(code[value + 1].text)
            return self._block_end(value)
        elif (code[value].kind == NAME and code[value + 1].text in {";", ""}) or end <= value + 1:
            found.exports["default"] = code[value].text
        else:
            found.exports["default"] = ""
        return end

    def _common_export(self, start: int, end: int) -> bool:
        """Record `module.exports = …` and `exports.name = …`."""
        code = self._code
        texts = code.texts(range(start, min(start + 6, end)))
        if texts[:4] == ["module", ".", "exports", "="]:
            at, name = start + 4, ""
        elif texts[:4] == ["module", ".", "exports", "."]:
            at, name = start + 6, texts[4] if len(texts) > 4 else ""  # noqa: PLR2004 - the name after the dot
        elif texts[:2] == ["exports", "."] and len(texts) > 3 and texts[3] == "=":  # noqa: PLR2004 - likewise
            at, name = start + 4, texts[2]
        else:
            return False
        stop = end - (code[end - 1].text == ";")
        value = range(at, stop)
        if name:
            self._export_value(name, value, start)
        elif code[at].text == "{":
            for key, where in code.entries(value).items():
                self._export_value(key, where, start)
            for part in code.split(code.inside(at)):
                self._method(part)
        else:
            self._export_value("default", value, start)
        return True

    def _export_value(self, name: str, value: range, start: int) -> None:
        code, found = self._code, self._found
        function = self._arrow(name, value, start)
        if function is not None:
            found.functions.setdefault(name, function)
            found.exports[name] = name
        elif len(value) == 1 and code[value.start].kind == NAME:
            found.exports[name] = code[value.start].text
        else:
            found.exports[name] = ""
            found.values.setdefault(name, value)

    def _method(self, part: range) -> None:
        """Record `async main(a) { … }` in an object of exports."""
        code = self._code
        index = part.start + (code[part.start].text == "async" and code[part.start + 1].kind == NAME)
        name, opening = code[index], index + 1
        if name.kind != NAME or code[opening].text != "(" or opening not in code.partners:
            return
        body = self._body(code.partners[opening] + 1)
        if body is None:
            return
        self._found.functions.setdefault(
            name.text,
            Function(
                name=name.text,
                parameters=code.inside(opening),
                body=code.inside(body),
                line=name.line,
                comment=self._comment(part.start),
            ),
        )
        self._found.exports[name.text] = name.text

    def _type(self, start: int) -> int:
        """Record the name and the range of a TypeScript type."""
        code = self._code
        text = code[start].text
        name = code[start + 1].text
        if text == "interface":
            end = self._block_end(start)
            opening = next((at for at in range(start, end) if code[at].text == "{"), end - 1)
            self._found.types[name] = range(opening, end)
            return end
        if text == "type":
            end = self._end(start)
            equals = next((at for at in range(start, end) if code[at].text == "="), end)
            self._found.types[name] = range(equals + 1, end - (code[end - 1].text == ";"))
            return end
        if text == "enum":
            end = self._block_end(start)
            self._found.enums[name] = range(start + 3, end - 1)
            return end
        return self._block_end(start) if text in {"namespace", "const"} else self._end(start)

    def _is_guard(self, start: int) -> bool:
        """Whether an `if` tests whether the file is run as a program."""
        code = self._code
        texts = set(code.texts(code.inside(start + 1)))
        return {"require", "main"} <= texts or {"import", "meta"} <= texts or "module" in texts

    def _only_assigns(self, start: int, end: int) -> bool:
        """Whether a statement only sets a property, such as `main.usage = …`."""
        code = self._code
        index = start
        while code[index].kind == NAME and code[index + 1].text == ".":
            index += 2
        return code[index].kind == NAME and code[index + 1].text == "=" and index + 1 < end

    def _comment(self, start: int) -> str:
        return self._code.comments.get(start, "") or (
            self._code.comments.get(start - 1, "") if self._code[start - 1].text == "export" else ""
        )

    def _block_end(self, start: int) -> int:
        """The index after the next block."""
        code = self._code
        index = start
        while index < len(code.tokens):
            if code[index].text == "{":
                return code.partners[index] + 1
            if code[index].text == ";":
                return index + 1
            index = code.partners.get(index, index) + 1
        return index

    def _end(self, start: int) -> int:
        """The index after a statement: it ends at a semicolon, or at a line end where it does not continue."""
        code = self._code
        index, count = start, len(code.tokens)
        while index < count:
            token = code[index]
            if token.text == ";" and token.kind == SIGN:
                return index + 1
            partner = code.partners.get(index)
            last = index if partner is None else partner
            following = code[last + 1]
            if last + 1 >= count:
                return count
            here = code[last]
            is_open = here.kind == SIGN and here.text in _GOES_ON and partner is None
            goes_on = following.kind == SIGN and following.text in _CONTINUES
            if following.line > _last_line(here) and not is_open and not goes_on and not _wants_more(here, following):
                return last + 1
            is_block = (
                partner is not None
                and token.text == "{"
                and code[start].text in {"if", "for", "while", "try", "switch", "{", "do"}
            )
            if is_block and following.text not in {"else", "catch", "finally", "while", ".", "("}:
                return last + 1
            index = last + 1
        return count


def _last_line(token: Token) -> int:
    return token.line + token.text.count("\n")


def _wants_more(here: Token, following: Token) -> bool:
    if here.kind == NAME and here.text in {
        "await",
        "new",
        "return",
        "typeof",
        "from",
        "default",
        "extends",
        "in",
        "of",
        "as",
    }:
        return True
    return following.kind == NAME and following.text in {"from", "else", "catch", "finally", "as", "in", "instanceof"}


def _with_comment(function: Function, comment: str) -> Function:
    return Function(
        name=function.name,
        parameters=function.parameters,
        body=function.body,
        line=function.line,
        comment=comment,
        result=function.result,
    )
