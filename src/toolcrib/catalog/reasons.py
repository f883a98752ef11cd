"""Why a tool of the store cannot be used now, although its document stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolcrib.model.tool import Http, Registered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.catalog.documents import Shelved
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.tool import Run


class Reason(NamedTuple):
    """Why it is off, and what turns it on."""

    text: str = ""
    cure: str = ""


USABLE = Reason()


def why_off(
    shelved: Shelved,
    bundle: Bundle,
    problem: str,
    functions: Mapping[str, Callable[..., object]],
    models: frozenset[str] | None,
) -> Reason:
    """The first thing that keeps it from being used; `problem` is what is wrong with the document of its bundle."""
    if shelved.tool is None:
        return Reason(f"its file is broken: {shelved.problem}", "repair the file, or delete the tool")
    if not shelved.enabled:
        return Reason("its own switch is off", f"switch it on with: crib enable {shelved.slug}")
    return _why_bundle_off(bundle, problem) or _what_is_missing(shelved.tool.run, functions, models) or USABLE


def _why_bundle_off(bundle: Bundle, problem: str) -> Reason | None:
    if problem:
        return Reason(f"the file of its bundle is broken: {problem}", "repair the file")
    if bundle.soft_deleted_at:
        return Reason(f"its bundle {bundle.slug} is being deleted", "write the bundle again")
    if not bundle.enabled:
        return Reason(f"its bundle {bundle.slug} is switched off", f"switch it on with: crib enable '{bundle.slug}/*'")
    return None


def _what_is_missing(
    run: Run, functions: Mapping[str, Callable[..., object]], models: frozenset[str] | None
) -> Reason | None:
    if isinstance(run, Registered) and run.key not in functions:
        cure = f'register one with @registered("{run.key}") in a module that modules names'
        return Reason(f"no function is registered under {run.key!r} in this process", cure)
    if isinstance(run, Registered | Http) and run.model and models is not None and run.model not in models:
        return Reason(f"the model {run.model!r} is not there", f"add {run.model!r} to models")
    return None
