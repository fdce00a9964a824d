"""A mutant: one function of the product, changed in a few characters, and the tests that have to notice.

The function keeps its identity and gets other code, so that every reference to it runs the mutant. A mutant whose text
is no longer in the product fails its test, and has to be written again.
"""

import asyncio
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import pytest

PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` is once in the source of ``function`` and becomes ``new``. A property is given by its getter."""

    mistake: str
    function: Any
    old: str
    new: str
    noticed_by: Callable[[], Any] | None = None
    """A test without arguments that has to fail then."""
    simulated: tuple[str, int] | None = None
    """The kinds of runs, as `simulate --kinds` takes them, and a seed with which the simulator finds it.

    None: it breaks no promise to a client; docs/inside/simulator-notebook.md has the proof.
    """

    def changed(self) -> FunctionType:
        """Return the function itself, also of a class method."""
        function: FunctionType = inspect.unwrap(getattr(self.function, "__func__", self.function))
        return function

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The product with the mistake in it."""
        original = self.changed()
        before: CodeType = original.__code__
        original.__code__ = self._code(original)
        try:
            yield
        finally:
            original.__code__ = before

    def _code(self, original: FunctionType) -> CodeType:
        source = textwrap.dedent(inspect.getsource(original))
        assert source.count(self.old) == 1, f"{self.mistake}: {self.old!r} is there {source.count(self.old)} times"
        lines = source.replace(self.old, self.new).splitlines()
        start = next(n for n, line in enumerate(lines) if line.startswith(("def ", "async def ")))
        scope = dict(original.__globals__)
        exec("\n".join(lines[start:]), scope)  # noqa: S102 - that is what a mutant is
        code: CodeType = scope[original.__name__].__code__
        assert code.co_freevars == original.__code__.co_freevars
        return code


async def passes(test: Callable[[], Any]) -> bool:
    """Whether a test of ours passes now; one that does not end in time does not."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            result = test()
            if inspect.isawaitable(result):
                await result
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - with any error, the mutant was noticed
        return False
    return True
