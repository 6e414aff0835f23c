"""The Jinja environment of the prompts, and what templates and budgets need: ages, quoting, token estimates. Floor 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from mdmemory.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Environment

PROMPTS = Path(__file__).parent / "prompts"


def render(name: str, prompts_dir: str | PathLike[str] | None = None, /, **variables: object) -> str:
    """Render the prompt `name`.md.j2.

    Args:
        prompts_dir: a folder whose file of that name, if any, is used instead of ours.

    Raises:
        ConfigError: the template is missing, is not valid, or uses a variable that it is not given.
    """
    with _explained(f"the prompt {name}.md.j2", variables):
        template = environment(None if prompts_dir is None else fspath(prompts_dir)).get_template(f"{name}.md.j2")
        return template.render(**variables).strip()


def render_own(source: str, /, **variables: object) -> str:
    """Render a template that a user gives as text; every variable that is not empty must have its place in it.

    Raises:
        ConfigError: it has no place for a variable, is not valid, or uses one that it is not given.
    """
    with _explained("the template", variables):
        from jinja2.meta import find_undeclared_variables

        used = find_undeclared_variables(environment(None).parse(source))
        if missing := [name for name, value in variables.items() if value and name not in used]:
            raise ConfigError(f"the template has no placeholder {{{{ {missing[0]} }}}}, so a part would be lost. Add it.")
        return environment(None).from_string(source).render(**variables).strip()


@contextmanager
def _explained(what: str, variables: Mapping[str, object]) -> Iterator[None]:
    """Say what is wrong with a template, as our error."""
    import jinja2

    try:
        yield
    except jinja2.UndefinedError as error:
        given = ", ".join(sorted(variables)) or "none"
        raise ConfigError(f"{what} uses what it is not given: {error.message}. Given are: {given}") from error
    except jinja2.TemplateNotFound as error:  # whose own text shows host paths
        raise ConfigError(f"there is no prompt {error.name}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} is not UTF-8; save it as UTF-8") from error
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:  # what its expressions may raise
        raise ConfigError(f"{what} can't be rendered: {error}") from error


@lru_cache(maxsize=8)
def environment(prompts_dir: str | None) -> Environment:
    """The environment in which prompts are rendered: a user's folder before ours, and no variable missing without an error."""
    import jinja2

    if prompts_dir is not None and not Path(prompts_dir).is_dir():
        raise ConfigError("prompts_dir is not a folder")
    folders = [str(PROMPTS)] if prompts_dir is None else [prompts_dir, str(PROMPTS)]
    loader = jinja2.FileSystemLoader(folders)
    made = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"quoted": quoted, "inline": inline}
    return made


def moment(time_ns: int) -> datetime:
    """Nanoseconds since 1970 as a UTC time."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC)


def age(days: float) -> str:
    """Days as people say them."""
    if days < 1:
        return "today"
    whole = int(days)
    if whole < 60:
        return "1 day ago" if whole == 1 else f"{whole} days ago"
    return f"{whole // 30} months ago" if whole < 730 else f"{whole // 365} years ago"


def quoted(text: str) -> str:
    """Every line behind `> `, at whatever character it was broken: nothing in the text can close the quotation."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def inline(text: str) -> str:
    """The text on one line, with nothing in it that could close a fence."""
    return " ".join(text.split()).replace("<", "‹").replace(">", "›")


def estimate_tokens(text: str) -> int:
    """Tokens by rule of thumb: four ASCII characters, or one other character, make a token."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return (ascii_chars + 3) // 4 + len(text) - ascii_chars
